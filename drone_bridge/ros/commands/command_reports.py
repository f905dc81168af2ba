# SPDX-License-Identifier: Apache-2.0
"""CommandReports: whose commands a vehicle follows, and why it does not follow others, or not wholly.

The executor and the link's thread record, the thread of the reports reads: each attribute is replaced as a whole.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Generic

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.cmd_vel_type import names_of
from drone_bridge.ros.commands.command_topic import CommandTopic, RawT
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.session.arbiter import Arbiter, Entrance
from drone_bridge.session.obstacles import Obstacle

#: Period in which it is reported whose commands are followed, s: a goal says within a second for whom it waits.
COMMANDER_PERIOD_S = 0.5
#: Smaller components of a command are rounding errors of a controller, m/s or rad/s.
ROUNDING = 1e-6
#: A smaller share of a command is not missed.
NEGLIGIBLE = 0.01
#: Time for which a command is reported that is not followed, s.
RECENT_S = 1.5
#: Largest component of a command of a goal that takes off or has landed, m/s or rad/s.
HOVERING = 0.1
#: Reason and advice if the limits of places stop a vehicle.
_AT_LIMIT = {
    "reason": "it is at limits.fence_radius or limits.max_height",
    "advice": "command another direction, or change the limit",
}
#: Axes of a Twist, each with its field of BodyVelocity and its unit.
TWIST_AXES = {
    "linear.x": ("forward", "m/s"),
    "linear.y": ("left", "m/s"),
    "linear.z": ("up", "m/s"),
    "angular.x": ("roll", "rad/s"),
    "angular.y": ("pitch", "rad/s"),
    "angular.z": ("turn", "rad/s"),
}


class CommandReports(Generic[RawT]):
    """Reports about one vehicle's commands."""

    def __init__(
        self,
        node: ProtocolNode,
        arbiter: Arbiter[RawT],
        topics: Mapping[str, CommandTopic[RawT]],
        supported: Callable[[BodyVelocity], BodyVelocity],
        *,
        has_landing_button: bool,
    ) -> None:
        """Begin to report. `topics` may change. `supported` returns a velocity on the axes that the vehicle has."""
        self._node, self._arbiter, self._topics, self._supported = node, arbiter, topics, supported
        self._has_landing_button = has_landing_button
        #: Newest overruled topic, and the time of its command, s.
        self.overruled: tuple[CommandTopic[RawT] | None, float] = None, -math.inf
        #: Newest velocity that has axes that the vehicle lacks, and its time, s.
        self.lacking = STILL, -math.inf
        #: Names of the supported axes of a Twist.
        self.follows = ""
        self._reduced_axes: set[str] = set()  # that were logged
        node.make_ticker("commander", COMMANDER_PERIOD_S, self._report_commander)
        node.each_second(self._report_gaps)
        node.each_second(self._report_ignored)
        node.each_second(self._report_reduction)

    def _followed(self, now_s: float) -> CommandTopic[RawT] | None:
        """Return the topic whose command is the newest, and fresh."""
        newest, limit_s = self._arbiter.newest, self._node.parameters["command_timeout"]
        found = (each for each in tuple(self._topics.values()) if newest and each.newest is newest)
        return next(found, None) if newest and now_s - newest.arrived_s < limit_s else None

    def _publishers(self, topic: CommandTopic[RawT]) -> str:
        return " or ".join(names_of(self._node.get_publishers_info_by_topic(topic.full_name)))

    def _report_commander(self) -> None:
        """Report whose commands are followed."""
        topic = self._followed(elapsed_s())
        self._node.hold.follow(topic.full_name if topic else "", self._publishers(topic) if topic else "")

    def _report_gaps(self) -> None:
        """Report commands that come so seldom that the vehicle stops after each of them."""
        timeout_s, now_s = self._node.parameters["command_timeout"], elapsed_s()
        facts = [
            {"topic": topic.full_name, "gap": f"{gap_s:.1f} s", "timeout": f"{timeout_s:g} s"}
            for topic in tuple(self._topics.values())
            if (gap_s := topic.gaps.beyond(timeout_s, now_s))
        ]
        self._node.report.update_obstacle(Obstacle.SELDOM, facts[0] if facts else None)

    def _report_ignored(self) -> None:
        """Report commands of the last second that the vehicle does not follow."""
        now_s, newest, limits = elapsed_s(), self._arbiter.newest, self._arbiter.limits
        facts = dict[Obstacle, dict[str, object]]()
        followed, (lower, at_s) = self._followed(now_s), self.overruled
        if lower and followed and now_s - at_s < RECENT_S and lower.entrance < followed.entrance:
            by = self._publishers(followed) or "a node that has gone"
            facts[Obstacle.OVERRULED] = {"topic": lower.full_name, "other": f"{followed.full_name}, by {by}"}
        velocity, at_s = self.lacking
        is_asked = max(map(abs, velocity.components)) > ROUNDING
        if is_asked and now_s - at_s < RECENT_S and self._supported(velocity) == STILL:
            axes = {"reason": f"this vehicle supports only {self.follows}", "advice": "command it on these axes"}
            facts[Obstacle.UNFOLLOWED] = {"wanted": _text(velocity), **axes}
        command = newest.command if newest and now_s - newest.arrived_s < RECENT_S else STILL
        if not isinstance(command, BodyVelocity) or command == STILL:
            pass
        elif self._has_landing_button and limits.is_grounded:
            if max(map(abs, (command.forward, command.left, command.turn))) > HOVERING:
                facts[Obstacle.GROUNDED] = {}
        elif not limits.is_blind(now_s):
            limited = limits.limited(command, now_s)
            if all(got / wanted <= NEGLIGIBLE for _, _, wanted, got in _pairs(command, limited) if wanted):
                facts[Obstacle.UNFOLLOWED] = {"wanted": _text(command), **_AT_LIMIT}
        for each in (Obstacle.OVERRULED, Obstacle.UNFOLLOWED, Obstacle.GROUNDED):
            # A goal reports itself for whom it waits.
            is_logged = each is not Obstacle.OVERRULED or lower is None or lower.entrance is not Entrance.GOAL
            self._node.report.update_obstacle(each, facts.get(each), is_logged=is_logged)

    def _report_reduction(self) -> None:
        """Log, once for each axis, what the vehicle follows of a velocity beyond its axes, limits or maxima."""
        velocity, _ = self.lacking
        for asked, followed in (self._arbiter.reduced, (velocity, self._supported(velocity))):
            least = max(ROUNDING, NEGLIGIBLE * max(map(abs, asked.components)))
            for axis, unit, wanted, got in _pairs(asked, followed):
                if abs(wanted - got) > least and axis not in self._reduced_axes:
                    self._reduced_axes.add(axis)
                    sentence = f"cmd_vel has {axis} = {wanted:g} {unit}, but the vehicle follows {got:g}, by its axes,"
                    self._node.report.inform(f"{sentence} limits or maxima. This is logged once.")


def _pairs(asked: BodyVelocity, followed: BodyVelocity) -> Iterator[tuple[str, str, float, float]]:
    """Yield each axis of a Twist with its unit, and its component in two velocities."""
    for axis, (field, unit) in TWIST_AXES.items():
        yield axis, unit, getattr(asked, field), getattr(followed, field)


def _text(velocity: BodyVelocity) -> str:
    """Return the components of a velocity as text."""
    return ", ".join(f"{axis} = {value:g} {unit}" for axis, unit, value, _ in _pairs(velocity, velocity) if value)
