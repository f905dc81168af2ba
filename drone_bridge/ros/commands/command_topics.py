# SPDX-License-Identifier: Apache-2.0
"""CommandTopics: command topics of a vehicle, whose valid messages go to an arbiter.

Streams (`cmd_vel`, `cmd_vel_stamped`, raw commands) are taken by the executor or the link's thread, see
`CommandStreams`. Only the executor handles the helm, since that locks the hold, writes its file and publishes.
"""

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable
from dataclasses import astuple, replace
from functools import partial
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.command_ages import CommandAges
from drone_bridge.ros.commands.command_streams import PERIOD_S, CommandStreams
from drone_bridge.ros.commands.velocity_messages import cmd_vel_type, velocity_frames
from drone_bridge.ros.node.limit_reports import LimitReports, read_limits
from drone_bridge.ros.node.protocol_node import COMMANDS, REFUSED_COMMANDS, ProtocolNode
from drone_bridge.ros.node.stall_watch import StaleStreamFilter
from drone_bridge.ros.other_types import warn_of_other_types
from drone_bridge.ros.qos import stream
from drone_bridge.ros.time import stamp_numbers
from drone_bridge.session.alternation import Alternation
from drone_bridge.session.arbiter import Arbiter, Arrival
from drone_bridge.session.command_gaps import CommandGaps
from drone_bridge.session.obstacles import Obstacle

RawT = TypeVar("RawT")

#: Smaller components of a command are rounding errors of a controller, m/s or rad/s.
ROUNDING = 1e-6
#: A smaller share of a command is not missed.
NEGLIGIBLE = 0.01
#: Nodes that command one vehicle besides a program, and are meant to: the page, and the controllers of goals.
MEANT = frozenset({"web_bridge", "drone_controller", "rover_controller", "pad_finder"})
#: Axes of a Twist, each with its field of BodyVelocity and its unit.
TWIST_AXES = {
    "linear.x": ("forward", "m/s"),
    "linear.y": ("left", "m/s"),
    "linear.z": ("up", "m/s"),
    "angular.x": ("roll", "rad/s"),
    "angular.y": ("pitch", "rad/s"),
    "angular.z": ("turn", "rad/s"),
}


class CommandTopics(Generic[RawT]):
    """Subscriptions to a vehicle's commands. Stale and non-finite ones are refused, the others go to `arbiter`."""

    def __init__(
        self,
        node: ProtocolNode,
        now: Callable[[], Time] | None = None,
        on_command: Callable[[], None] = lambda: None,
        *,
        period_s: float | None = PERIOD_S,
        within_maxima: Callable[[BodyVelocity | RawT], BodyVelocity | RawT] | None = None,
        holds_zero: bool = False,
        has_landing_button: bool = False,
    ) -> None:
        """Create the arbiter. RawT is the type of raw commands, NoReturn if there are none.

        Args:
            node: the node with the topics.
            now: the clock of the stamps, if it is not a machine's clock.
            on_command: callback for a new command between two decisions, and for dropped commands.
            period_s: longest time between two takes of the link's thread while commands flow, s; None: the executor
                takes each command.
            within_maxima: returns the part of a command that the vehicle can follow; None: all of it.
            holds_zero: whether zero from the helm is flown, since it holds the vehicle better than the neutral command.
            has_landing_button: whether the vehicle lands by a button, not by a velocity.
        """
        self._node = node
        self._now = now
        self._on_command = on_command
        self._holds_zero, self._has_landing_button = holds_zero, has_landing_button
        self._streams = node.intake = CommandStreams(node, on_command, period_s)
        #: Arbiter of the session's commands.
        self.arbiter: Arbiter[RawT] = Arbiter(
            node.hold.state,
            read_limits(node),
            lambda: float(node.parameters["command_timeout"]),
            node.report,
            take=self._streams.take,
            within_maxima=within_maxima,
        )
        LimitReports(node, self.arbiter)
        self._report = self._streams.report
        self._settling = StaleStreamFilter()
        self._follows = ""  # supported axes of a Twist
        self._unsupported: dict[str, str] = {}  # unsupported axes, with their fields
        self._warned_axes: set[str] = set()
        self._reduced_axes: set[str] = set()
        node.hold.when_set(self._forget)
        self._alternation = Alternation()  # of all topics: a later one may be overruled
        self._gaps: dict[str, CommandGaps] = {}  # by topic
        node.each_second(self._report_commanders)
        node.each_second(self._report_gaps)
        node.each_second(self._report_reduction)

    def take_velocities(self, follows: Collection[str] = tuple(TWIST_AXES)) -> None:
        """Subscribe to cmd_vel, cmd_vel_stamped and ~/helm.

        cmd_vel_stamped takes precedence over cmd_vel. The helm is for a person at a stick, and locks out all others:
        see `Hold`. `follows` names the TWIST_AXES that the vehicle supports. Commands on other axes are logged once.
        """
        self.arbiter.sinks = "linear.z" in follows and not self._has_landing_button
        self._unsupported = {axis: field for axis, (field, _) in TWIST_AXES.items() if axis not in follows}
        self._follows = ", ".join(follows)
        parameters = self._node.parameters
        read = velocity_frames(parameters, lambda: self._node.observed.yaw).in_body
        cmd_vel = cmd_vel_type(parameters)
        # The helm comes first, so that the executor serves it first.
        self.take("~/helm", TwistStamped, read, is_helm=True)
        self.take("cmd_vel", cmd_vel, read)
        self.take("cmd_vel_stamped", TwistStamped, read, overrules=True)
        warn_of_other_types(self._node, "cmd_vel", cmd_vel, publishes=False)

    def take(
        self,
        topic: str,
        message_type: type,
        read: Callable[[Any], BodyVelocity | RawT],
        *,
        overrules: bool = False,
        is_helm: bool = False,
    ) -> None:
        """Subscribe to velocities or raw commands. Those older than `command_timeout` are refused, see CommandAges.

        `read` converts a fresh message, or raises ValueError with a sentence. After a command on a topic that
        `overrules`, those on other topics are ignored for `command_timeout`. `Hold` decides whether commands are
        followed. A zero velocity that was taken late, or may be stale after a stall, ends the command from before.
        """
        is_stamped = "header" in message_type.get_fields_and_field_types()  # type: ignore[attr-defined]
        ages = CommandAges(self._node, topic, self._now)
        gaps = CommandGaps()
        if not is_helm:
            self._gaps[self._node.resolve_topic_name(topic)] = gaps

        def receive(message: Any) -> bool:
            stamp = ages.stamp_of(message) if is_stamped else None
            refusal = _non_finite_field(message)
            if not refusal and (refusal := self._settling.refusal()) and stops(message):
                return True
            refusal = refusal or (stamp and ages.refusal(stamp))
            if not refusal:
                try:
                    command = read(message)
                except ValueError as error:
                    refusal = str(error)
            if refusal:
                sentence = f"A command on {topic} was refused: {refusal}"
                self._report(partial(self._node.report.count_and_warn, REFUSED_COMMANDS, sentence))
                return False
            now_s = elapsed_s()
            is_zero = command == STILL if isinstance(command, BodyVelocity) else _is_zero(message)
            if not is_helm and self._node.hold.state.is_free:
                self._alternation.received(is_zero, now_s)
            if not self._is_admitted(topic, now_s, overrules=overrules, is_helm=is_helm):
                return False
            gaps.received(is_zero, now_s)
            self._report(partial(self._node.undelivered, topic))
            if isinstance(command, BodyVelocity):
                command = self._supported(command)
            if is_helm and not self._holds_zero and command == STILL:
                self._forget()  # a centred stick: the neutral command holds this vehicle best
                return False
            self.arbiter.put(Arrival(command, now_s, stamp_numbers(stamp) if stamp else None, is_helm=is_helm))
            return True

        def stops(message: Any) -> bool:
            """End the newest command by a message that may be stale. Return whether the message is zero and may do so.

            That needs the precedence of the newest command.
            """
            is_first = is_helm or (self._node.hold.state.is_free and (overrules or self.arbiter.admits(elapsed_s())))
            try:
                if not is_first or read(message) != STILL:
                    return False
            except ValueError:
                return False
            self.arbiter.forget()
            return True

        def receive_from_helm(message: Any) -> None:
            if receive(message):
                self._on_command()

        if is_helm:
            self._node.make_subscription(message_type, topic, receive_from_helm, stream())
        else:
            self._streams.add(message_type, topic, receive, stops)

    def _is_admitted(self, topic: str, now_s: float, *, overrules: bool, is_helm: bool) -> bool:
        """Return whether a valid command is followed, by the hold and the precedence of its topic. Counts it."""
        counts, hold = self._node.report.counts, self._node.hold
        if is_helm:
            if not hold.admits(topic, is_helm=True):
                return False
        elif not hold.state.is_free:
            self._report(partial(hold.admits, topic))
            return False
        elif not self.arbiter.admits(now_s, overrules=overrules):
            counts["overruled_commands"] += 1
            return False
        counts[COMMANDS] += 1
        return True

    def _supported(self, velocity: BodyVelocity) -> BodyVelocity:
        """Return the velocity on supported axes. Counts and warns of commands on the others."""
        rest = {axis: value for axis, field in self._unsupported.items() if (value := getattr(velocity, field))}
        if not rest:
            return velocity
        least = max(ROUNDING, NEGLIGIBLE * max(map(abs, astuple(velocity))))
        asked = {axis: value for axis, value in rest.items() if abs(value) > least}
        if asked:
            self._node.report.counts["commands_on_unsupported_axes"] += 1
        if not asked.keys() <= self._warned_axes:
            self._warned_axes |= asked.keys()
            wanted = ", ".join(f"{axis} = {value:g} {TWIST_AXES[axis][1]}" for axis, value in asked.items())
            sentence = (
                f"cmd_vel has {wanted}, but this vehicle supports only {self._follows}. The rest of the command is "
                "followed. This is logged once."
            )
            self._report(partial(self._node.report.warn, sentence))
        return replace(velocity, **{self._unsupported[axis]: 0.0 for axis in rest})

    def _report_commanders(self) -> None:
        """Report programs that stop each other's motion. On Jazzy, a message does not name its publisher."""
        nodes: dict[str, str] = {}
        for topic in self._gaps if self._alternation.lasts(elapsed_s()) else ():
            found = self._node.get_publishers_info_by_topic(topic)
            names = [f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in found]
            nodes |= {each: f"{each} on {topic}" for each in names if each.rpartition("/")[2] not in MEANT}
        facts = {"number": len(nodes), "nodes": " and ".join(map(nodes.__getitem__, sorted(nodes)))}
        self._node.report.update_obstacle(Obstacle.COMMANDERS, facts if len(nodes) > 1 else None)

    def _report_gaps(self) -> None:
        """Report commands that come so seldom that the vehicle stops after each of them."""
        timeout_s, now_s = self._node.parameters["command_timeout"], elapsed_s()
        found = {topic: gap_s for topic, gaps in self._gaps.items() if (gap_s := gaps.beyond(timeout_s, now_s))}
        facts = [
            {"topic": each, "gap": f"{gap_s:.1f} s", "timeout": f"{timeout_s:g} s"} for each, gap_s in found.items()
        ]
        self._node.report.update_obstacle(Obstacle.SELDOM, facts[0] if facts else None)

    def _report_reduction(self) -> None:
        """Log, once for each axis, what the vehicle follows of a velocity beyond its limits or maxima."""
        asked, followed = self.arbiter.reduced
        for axis, (field, unit) in TWIST_AXES.items():
            wanted, got = getattr(asked, field), getattr(followed, field)
            if abs(wanted - got) > max(ROUNDING, NEGLIGIBLE * abs(wanted)) and axis not in self._reduced_axes:
                self._reduced_axes.add(axis)
                sentence = f"cmd_vel has {axis} = {wanted:g} {unit}, but the vehicle's limits or maximum allow {got:g}."
                self._node.report.inform(f"{sentence} This is logged once.")

    def _forget(self) -> None:
        self._streams.drop_waiting()
        self.arbiter.forget()
        self._on_command()  # so that the neutral command is sent now


def _non_finite_field(message: Any) -> str | None:
    for name, get in _float_getters(message.__class__):
        if not math.isfinite(value := get(message)):
            return f"{name} is {value} but must be a finite number."
    return None


def _is_zero(message: Any) -> bool:
    return not any(get(message) for _, get in _float_getters(message.__class__))


@functools.cache
def _float_getters(message_type: type) -> tuple[tuple[str, Callable[[Any], float]], ...]:
    """Return name, such as angular.x, and getter of each float. Cached: the search is slower than a command."""

    def names(message: Any, prefix: str) -> Iterable[str]:
        for name in message.get_fields_and_field_types():
            value = getattr(message, name)
            if isinstance(value, float):
                yield f"{prefix}{name}"
            elif hasattr(value, "get_fields_and_field_types"):
                yield from names(value, f"{prefix}{name}.")

    return tuple((name, operator.attrgetter(name)) for name in names(message_type(), ""))
