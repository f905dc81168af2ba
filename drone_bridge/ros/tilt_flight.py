# SPDX-License-Identifier: Apache-2.0
"""Commands of a drone that is steered by tilt: velocities on cmd_vel, held by its feedback, and shares on cmd_axes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist

from drone_bridge.motion.tilt_control import Motion, Shares, TiltControl, TiltedDrone, Velocity
from drone_bridge.ros.commands import CommandIntake
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.vehicle_node import VehicleNode

#: What was measured before that is not flown by.
FEEDBACK_TIMEOUT_S = 0.2
#: The count of velocities that were flown without feedback.
BLIND = "commands flown by an estimate"
FOLLOWED_AXES = ("linear.x", "linear.y", "linear.z", "angular.z")


def drone_parameters(drone: TiltedDrone) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of a drone's full deflections; `drone` has the defaults."""
    return tuple(
        ParameterDeclaration(f"drone.{name}", getattr(drone, name), meaning, range=(least, most))
        for name, meaning, least, most in (
            ("max_tilt", "Tilt at full deflection, rad.", 0.01, 1.2),
            ("max_climb", "Climb at full deflection, m/s.", 0.01, 20.0),
            ("max_yaw_rate", "Turn rate at full deflection, rad/s.", 0.01, 20.0),
        )
    )


def read_drone(parameters: DeclaredParameters, drone: TiltedDrone) -> TiltedDrone:
    """Return a drone with the full deflections of these parameters."""
    deflections = {name: parameters[f"drone.{name}"] for name in ("max_tilt", "max_climb", "max_yaw_rate")}
    return replace(drone, **deflections)


class TiltFlight:
    """Turns the newest command into shares. `measured` and `stands` are for any one thread, the rest for the link's."""

    def __init__(
        self, node: VehicleNode, drone: TiltedDrone, *, hovers: bool, now: Callable[[], Time] | None = None
    ) -> None:
        """Subscribe to the command topics.

        Args:
            node: with the parameters of `drone_parameters`.
            drone: how it comes to its full deflections.
            hovers: whether the drone stops by itself when it gets its neutral command.
            now: the clock of stamps, if that is not a machine's clock.
        """
        self._node = node
        self._hovers = hovers
        self._drone = read_drone(node.parameters, drone)
        self._control = TiltControl(self._drone)
        self._has_told_of_units = self._has_told_of_turns = False
        self.restart()
        self.intake: CommandIntake[Velocity | Shares] = CommandIntake(node, now=now, holds_zero=True)
        self.intake.take_limited_velocities(self._read_velocity, FOLLOWED_AXES)
        self.intake.take_axes(_limited)

    def restart(self) -> None:
        """Forget the drone, which may be another one; old commands too are for the caller to forget."""
        self._control.restart()
        self._newest: tuple[Motion, float] | None = None  # with the time of time.monotonic; replaced as one
        self._seen_s = -math.inf
        self._stepped_s = time.monotonic()
        self._is_on_ground = False

    def measured(self, motion: Motion) -> None:
        """Take what the drone in the air measures of itself."""
        self._is_on_ground = False
        self._newest = motion, time.monotonic()

    def stands(self) -> None:
        """Note that the drone is on the ground, or not in flight yet: references begin when it flies."""
        self._is_on_ground = True
        self._newest = None

    def shares(self, *, is_overruled: bool = False) -> Shares | None:
        """Return what to send now; None is the neutral command, which `is_overruled` asks for."""
        now_s = time.monotonic()
        step_s, self._stepped_s = max(now_s - self._stepped_s, 1e-3), now_s
        command = None if is_overruled else self.intake.follow()
        if isinstance(command, Velocity):
            return self._flown(command, step_s, now_s)
        self._control.restart()
        self._seen_s = -math.inf
        return command

    def _flown(self, wanted: Velocity, step_s: float, now_s: float) -> Shares | None:
        """Return the shares for a velocity."""
        newest, is_rest = self._newest, wanted == Velocity()
        is_blind = newest is None or now_s - newest[1] > FEEDBACK_TIMEOUT_S
        if newest and newest[1] != self._seen_s and not is_blind:
            self._seen_s = newest[1]
            self._control.measure(newest[0])
        if self._is_on_ground:
            self._control.restart()
        shares = self._control.command(wanted, step_s, is_blind=is_blind)
        if not is_blind:
            self._node.reports.end_ongoing(BLIND)
        elif is_rest and self._hovers:
            self._control.restart()
            return None
        elif not self._is_on_ground:
            self._node.reports.count_and_warn_ongoing(
                BLIND,
                "The drone has not told how it moves for 0.2 s: velocities are estimated from the tilt that is "
                "commanded, and it drifts with the wind.",
            )
        return shares

    # What the executor does.

    def _read_velocity(self, twist: Twist) -> tuple[Velocity, bool]:
        """Read a finite cmd_vel: linear.x is forward, linear.y left, linear.z up, angular.z a left turn (REP 103)."""
        drone, turn, climb = self._drone, twist.angular.z, twist.linear.z
        if not self._has_told_of_units:
            self._has_told_of_units = True
            self._node.inform("cmd_vel is followed in m/s and rad/s. Shares of full tilt, as in 0.2, go to cmd_axes.")
        if abs(turn) > drone.max_yaw_rate and not self._has_told_of_turns:
            self._has_told_of_turns = True
            self._node.warn(
                f"cmd_vel asks for a turn of {turn:g} rad/s, and this drone turns at {drone.max_yaw_rate:g} rad/s at "
                "most (drone.max_yaw_rate). This is logged once."
            )
        within = abs(turn) <= drone.max_yaw_rate and abs(climb) <= drone.max_climb
        return Velocity(twist.linear.x, twist.linear.y, climb, turn), within


def _limited(shares: Shares) -> tuple[Shares, bool]:
    """Return finite shares within -1 to 1, and whether they were."""
    clamped = Shares(*(max(-1.0, min(1.0, share)) for share in shares))
    return clamped, clamped == shares
