# SPDX-License-Identifier: Apache-2.0
"""Who decides what a vehicle does, and what of a commanded velocity it is told: motion/limits.py for a bridge."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from geometry_msgs.msg import Twist, Vector3
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too

from drone_bridge.motion.limits import LimitParameters, Limits, Rank, ruling
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.parameters import ParameterDeclaration, declarations, read

_PREFIX = "limits"
#: Of drones, m/s: teleop's keys and Nav2's defaults stay below it.
DRONE_MAX_SPEED = 2.0
_DRONE_LANDS_AFTER_S = 5.0
#: How fast a drone sinks that has to land and has no button for it, m/s.
LANDING_SPEED = 0.5
_REPORT_PERIOD_S = 1.0

CommandT = TypeVar("CommandT")


def limit_parameters(*, is_drone: bool) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the limits, with the defaults of a drone or of another vehicle."""
    drones = {f"{_PREFIX}.max_speed": DRONE_MAX_SPEED, f"{_PREFIX}.land_after": _DRONE_LANDS_AFTER_S}
    return tuple(
        replace(each, default=drones.get(each.name, each.default) if is_drone else each.default)
        for each in declarations(LimitParameters, _PREFIX)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Asked(Generic[CommandT]):
    """A command as it was asked for."""

    command: CommandT
    velocity: Twist | None = None
    """What it was made from, where that is a velocity; a raw command has none, and no limits."""


class Ruler(Generic[CommandT]):
    """Decides for the link's thread what of the newest command is sent, by `Rank`."""

    def __init__(self, node: LinkNode) -> None:
        """Read the parameters; a node without those of `limit_parameters` has no limits."""
        has_limits = f"{_PREFIX}.max_speed" in node.parameters
        self._node = node
        parameters = read(LimitParameters, _PREFIX, node.parameters) if has_limits else LimitParameters()
        self._limits = Limits(parameters, node.observed)
        #: Makes a command of a velocity.
        self.read: Callable[[Twist], CommandT] | None = None
        #: Whether the vehicle follows linear.z, and so can sink.
        self.can_sink = False
        #: Lands the vehicle, and returns the outcome in a sentence, if it has a button for that.
        self.land: Callable[[], Awaitable[str]] | None = None
        self._is_landing = False
        if has_limits:
            timer = node.create_timer(
                _REPORT_PERIOD_S,
                self._report,  # type: ignore[arg-type] # executors await it
                callback_group=ReentrantCallbackGroup(),  # as a landing takes long
                clock=Clock(clock_type=ClockType.STEADY_TIME),
            )
            node.cleanup.callback(node.destroy_timer, timer)

    def rank(self, asked: Asked[CommandT] | None) -> Rank:
        """Return who decides, where this is the newest command that is fresh."""
        now_s, hold = time.monotonic(), self._node.hold
        is_velocity = asked is not None and asked.velocity is not None
        return ruling(
            {
                Rank.HOLD: hold.is_held,
                Rank.HELM: hold.is_at_helm,
                Rank.LANDING: self._limits.must_land(now_s),
                # Below the helm: a person sees the vehicle, and brings it back where it does not know itself.
                Rank.BLIND: is_velocity and self._limits.is_blind(now_s),
                Rank.COMMAND: asked is not None,
            }
        )

    def settled(self, asked: Asked[CommandT] | None) -> CommandT | None:
        """Return what is sent now, None for the neutral command."""
        rank = self.rank(asked)
        if rank is Rank.LANDING and self.read and self.can_sink and not self.land:
            return self.read(Twist(linear=Vector3(z=-LANDING_SPEED)))
        return self._limited(asked) if asked and rank in (Rank.HELM, Rank.COMMAND) else None

    def _limited(self, asked: Asked[CommandT]) -> CommandT:
        twist = asked.velocity
        if twist is None or self.read is None:
            return asked.command
        before = twist.linear.x, twist.linear.y, twist.linear.z
        x, y, z = self._limits.limited(before, time.monotonic())
        if (x, y, z) == before:
            return asked.command
        self._node.statistics.counts["limited commands"] += 1
        return self.read(Twist(linear=Vector3(x=x, y=y, z=z), angular=twist.angular))

    async def _report(self) -> None:
        """Say what limits the vehicle, and press the button that lands it. In the executor."""
        now_s, limits, update = time.monotonic(), self._limits, self._node.reports.update_condition
        is_low, must_land = limits.is_battery_low, limits.must_land(now_s)
        is_blind = self._node.observed.newest is not None and limits.is_blind(now_s)
        charge = f"the battery has less than {limits.parameters.low_battery:.0%} left (limits.low_battery)"
        update("battery", charge if is_low else None, "land")
        blind = "the vehicle's odometry is missing, which its fence or maximum height needs, so it gets no velocities"
        update("odometry", blind if is_blind else None, "take the helm, or wait for the landing")
        update("landing", "it lands by itself" if must_land else None, "hold it, or take the helm, to prevent that")
        if must_land and self.land and not self._is_landing and self.rank(None) is Rank.LANDING:
            self._is_landing = True
            try:
                self._node.warn(await self.land())
            except ValueError as error:
                self._node.warn(f"The vehicle has to land, and does not: {error}")
            finally:
                self._is_landing = False
