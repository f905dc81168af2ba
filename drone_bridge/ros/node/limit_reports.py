# SPDX-License-Identifier: Apache-2.0
"""LimitReports: reports of a vehicle's active limits and of its fence, and the parameters of the limits."""

from dataclasses import fields, replace
from typing import Any

from geometry_msgs.msg import Point32, Polygon, PolygonStamped

from drone_bridge.motion.limits import BRAKED_S, DOUBTED_SPEED, Cause, LimitParameters, Limits
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.distributions import call_after_set
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations, read
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.publishers import NO_EVENTS, try_publish
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.session.arbiter import Arbiter, Rank
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import Landing

_LIMITS = "limits"
#: Reasons why a vehicle does not land, as clauses.
_OBSTACLES = {
    Landing.DISCONNECTED: "since it is not connected",
    Landing.SILENT: "since it does not report",
    Landing.UNKNOWN_FLIGHT: "since it is unknown whether it flies",
    Landing.UNSUPPORTED: "since it has no command to land or sink",
}
#: What prevents a landing, as a clause.
_PREVENTION = {
    Cause.BATTERY: "only the helm prevents that, after a resume if it is held",
    Cause.ODOMETRY: "STOP or the helm prevents that",
    Cause.UNATTENDED: "a command, STOP or the helm prevents that",
}
#: Velocities that a vehicle gets while its place is doubted, but known by a model.
_RETURN = f"only velocities towards the start, at {DOUBTED_SPEED:g} m/s, once it has braked for {BRAKED_S:g} s"
#: Topic of the fence, a convex polygon in the odometry frame.
FENCE = "fence"
#: Default for drones, m/s. The defaults of teleop and Nav2 are lower.
DRONE_MAX_SPEED = 2.0
_DRONE_LANDS_AFTER_S = 5.0
#: Default for drones whose flight only their bridge commands, s. A person who only watches the page does not command.
LAND_UNATTENDED_S = 60.0
#: Default of `low_battery`: most vehicles end by themselves below 10 %.
LOW_BATTERY = 0.15
#: How long before such a landing it is warned of, s, but at most half of that time.
_WARNED_S = 10.0


def limit_parameters(
    *, is_drone: bool, can_climb: bool = True, tells_battery: bool = False, land_unattended_s: float | None = None
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the limits that a vehicle supports, with defaults for a drone or another vehicle.

    Args:
        is_drone: whether the vehicle flies, and so can land.
        can_climb: whether it follows a vertical speed.
        tells_battery: whether it reports its charge (`Limits.charged`).
        land_unattended_s: default of `land_unattended`, s; None if it does not report whether it flies.
    """
    drones = {"max_speed": DRONE_MAX_SPEED, "land_without_odometry": _DRONE_LANDS_AFTER_S} if is_drone else {}
    drones |= {"land_unattended": float(land_unattended_s or 0.0), "low_battery": LOW_BATTERY}
    has = {"max_height": can_climb, "land_without_odometry": is_drone, "low_battery": tells_battery}
    has["land_on_low_battery"] = is_drone and tells_battery
    has["land_unattended"] = is_drone and land_unattended_s is not None
    replaced = {
        "fence_radius": (f"{_LIMITS}.fence_x", f"{_LIMITS}.fence_y"),
        "land_without_odometry": (f"{_LIMITS}.land_after",),
    }
    return tuple(
        replace(
            each,
            default=drones.get(each.name.removeprefix(f"{_LIMITS}."), each.default),
            live=True,
            replaces=replaced.get(each.name.removeprefix(f"{_LIMITS}."), ()),
        )
        for each in declarations(LimitParameters, _LIMITS)
        if has.get(each.name.removeprefix(f"{_LIMITS}."), True)
    )


def read_limits(node: ProtocolNode) -> Limits:
    """Return the limits that a node's parameters configure."""
    return Limits(read(LimitParameters, node.parameters, _LIMITS), node.observed)


class LimitReports:
    """Report, once per second, of the active limits. Publishes the fence when its place is known or has changed.

    Applies changes of the parameters, all of one request at once.
    """

    def __init__(self, node: ProtocolNode, arbiter: Arbiter[Any]) -> None:
        self._node, self._arbiter = node, arbiter
        self._fence: Any = None  # its publisher; None without a fence
        self._corners: list[tuple[float, float]] = []  # published so far
        self._create_fence()
        self._report_blindness(elapsed_s())  # at once, to explain ignored commands
        node.each_second(self._report)
        node.report.silence.flies = lambda: arbiter.limits.flies
        if remove := call_after_set(node, self._apply):
            node.cleanup.callback(remove)
        else:
            node.each_second(self._apply)

    def _create_fence(self) -> None:
        """Create the publisher of a fence. It stays without one, and then publishes an empty polygon."""
        if self._fence is None and self._arbiter.limits.parameters.fence_radius:
            node = self._node
            self._fence = node.create_publisher(PolygonStamped, FENCE, latched(), event_callbacks=NO_EVENTS)
            node.cleanup.callback(node.destroy_publisher, self._fence)

    def _apply(self, _: object = None) -> None:
        """Replace the limits if a parameter has changed, and log each change."""
        limits = self._arbiter.limits
        before, after = limits.parameters, read(LimitParameters, self._node.parameters, _LIMITS)
        if after == before:
            return
        limits.parameters = after
        for each in fields(after):
            old, new = getattr(before, each.name), getattr(after, each.name)
            if old != new:
                self._node.get_logger().info(f"{_LIMITS}.{each.name} changed from {_text(old)} to {_text(new)}.")
        self._create_fence()
        self._publish_fence()
        self._report_blindness(elapsed_s())

    def _report(self) -> None:
        self._publish_fence()
        now_s, limits, update = elapsed_s(), self._arbiter.limits, self._node.report.update_obstacle
        charge = {"charge": f"{limits.parameters.low_battery:.0%}"}
        update(Obstacle.BATTERY, charge if limits.is_battery_low(now_s) else None)
        self._report_blindness(now_s)
        self._report_landing(now_s)

    def _report_landing(self, now_s: float) -> None:
        """Report what the session does about a landing that the limits require."""
        arbiter, facts = self._arbiter, dict[Obstacle, dict[str, object]]()
        warned_s = min(_WARNED_S, arbiter.limits.parameters.land_unattended / 2.0)
        if arbiter.rank(now_s) is Rank.LANDING:
            landing, cause = self._node.landing(now_s), arbiter.cause(now_s)
            if landing is Landing.LANDS and cause:
                facts[Obstacle.LANDING] = {"when": "by itself", "cause": cause.value, "prevention": _PREVENTION[cause]}
            elif landing is not Landing.GROUNDED:
                facts[Obstacle.UNABLE_TO_LAND] = {"reason": _OBSTACLES[landing]}
        elif arbiter.rank(now_s + warned_s) is Rank.LANDING and arbiter.cause(now_s + warned_s) is Cause.UNATTENDED:
            cause, when = Cause.UNATTENDED, f"within {warned_s:g} s"
            facts[Obstacle.LANDING] = {"when": when, "cause": cause.value, "prevention": _PREVENTION[cause]}
        for each in (Obstacle.LANDING, Obstacle.UNABLE_TO_LAND):
            self._node.report.update_obstacle(each, facts.get(each))

    def _report_blindness(self, now_s: float) -> None:
        """Report limits that lack measurements, and which velocities the vehicle gets meanwhile."""
        limits, facts = self._arbiter.limits, dict[Obstacle, dict[str, object]]()
        names = " and ".join(f"{_LIMITS}.{name}" for name in limits.parameters.of_places)
        needs = f"{names} need" if " and " in names else f"{names} needs"
        if missing := limits.missing:
            facts[Obstacle.UNREPORTED] = {"limits": needs, "missing": " and ".join(missing)}
        elif limits.is_blind(now_s):
            stale, is_doubted = limits.stale(now_s), limits.is_doubted(now_s)
            reason = "is doubted" if is_doubted else f"{' and '.join(stale)} {'are' if stale[1:] else 'is'} stale"
            reason = reason if stale or is_doubted else "own pose has begun again"
            allowed = _RETURN if is_doubted and self._node.observed.newest.modelled else "no velocities"
            facts[Obstacle.ODOMETRY] = {"limits": needs, "reason": reason, "allowed": allowed}
        if gap_s := limits.uncertain_s:
            facts[Obstacle.FENCE] = {"reason": f"the vehicle's motion was unknown for {gap_s:.1f} s"}
        if way_m := limits.unseen_m:
            began = f"the vehicle's own pose began again, and it may have moved by {way_m:.2f} m meanwhile"
            facts[Obstacle.FENCE] = {"reason": began}
        for each in (Obstacle.UNREPORTED, Obstacle.ODOMETRY, Obstacle.FENCE):
            self._node.report.update_obstacle(each, facts.get(each))

    def _publish_fence(self) -> None:
        corners = self._arbiter.limits.fence
        if self._fence and corners != self._corners:
            self._corners = corners
            message = PolygonStamped(polygon=Polygon(points=[Point32(x=x, y=y) for x, y in corners]))
            message.header.frame_id = read(FrameNames, self._node.parameters).odom
            message.header.stamp = self._node.get_clock().now().to_msg()
            try_publish(self._fence, message)


def _text(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
