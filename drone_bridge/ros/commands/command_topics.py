# SPDX-License-Identifier: Apache-2.0
"""CommandTopics: command topics of a vehicle, whose valid messages go to an arbiter.

Streams (`cmd_vel`, `cmd_vel_stamped`, raw commands) are taken by the executor or the link's thread, see
`CommandStreams`. Only the executor handles the helm, since that locks the hold, writes its file and publishes.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any, Generic

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.msg import PilotCommand
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.cmd_vel_type import (
    BRIDGE_PERIOD_S,
    UNKNOWN_NODE,
    followed_type,
    goal_topics,
    independent,
)
from drone_bridge.ros.commands.command_ages import CommandAges
from drone_bridge.ros.commands.command_reports import TWIST_AXES, CommandReports
from drone_bridge.ros.commands.command_streams import PERIOD_S, CommandStreams
from drone_bridge.ros.commands.command_topic import CommandTopic, RawT, Refusal, has_only_zeros, non_finite_field
from drone_bridge.ros.commands.other_nodes import OtherNodes
from drone_bridge.ros.commands.velocity_messages import velocity_frames
from drone_bridge.ros.node.limit_reports import LimitReports, read_limits
from drone_bridge.ros.node.log_limiter import CONDITION_ENDS_AFTER_S
from drone_bridge.ros.node.protocol_node import COMMANDS, REFUSED_COMMANDS, ProtocolNode
from drone_bridge.ros.node.stall_watch import StaleStreamFilter
from drone_bridge.ros.qos import stream
from drone_bridge.ros.time import stamp_numbers
from drone_bridge.ros.type_names import endpoints_by_type, name_of_type
from drone_bridge.session.arbiter import Arbiter, Arrival, Entrance
from drone_bridge.session.obstacles import Obstacle


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
        self._lacking: dict[str, float] = {}  # fields of the axes that the vehicle lacks, each as 0
        node.hold.when_set(self._forget)
        self._topics: dict[str, CommandTopic[RawT]] = {}  # without the helm
        self._others, self._was_commanded = OtherNodes(node, self._topics), False
        node.each_second(self._others.look_for_vehicles)
        self._reports = CommandReports(
            node, self.arbiter, self._topics, self._supported, has_landing_button=has_landing_button
        )

    def take_velocities(self, follows: Collection[str] = tuple(TWIST_AXES)) -> None:
        """Subscribe to the topics of velocities, each with the precedence of its Entrance.

        The helm is for a person at a stick, and locks out all others: see `Hold`. `follows` names the TWIST_AXES that
        the vehicle supports. Commands on other axes are logged once.
        """
        self.arbiter.sinks = "linear.z" in follows and not self._has_landing_button
        self._lacking = {field: 0.0 for axis, (field, _) in TWIST_AXES.items() if axis not in follows}
        self._reports.follows = ", ".join(follows)
        parameters = self._node.parameters
        read = velocity_frames(parameters, lambda: self._node.observed.yaw).in_body
        # The helm comes first, so that the executor serves it first.
        self.take("~/pilot", PilotCommand, read, Entrance.HELM)
        self.take("~/helm", TwistStamped, read, Entrance.HELM)
        self.take("cmd_vel", Twist, read)
        self.take("cmd_vel_stamped", TwistStamped, read, Entrance.STAMPED)
        for topic, entrance in zip(goal_topics(self._node), (Entrance.GOAL, Entrance.LANDING), strict=True):
            self.take(topic, Twist, read, entrance)
        self._type_change = self._node.make_guard_condition(self._change_type)
        self._node.make_ticker("types", BRIDGE_PERIOD_S, self._follow_publishers)

    def take(
        self,
        topic: str,
        message_type: type,
        read: Callable[[Any], BodyVelocity | RawT],
        entrance: Entrance = Entrance.PROGRAM,
    ) -> None:
        """Subscribe to velocities or raw commands. Those older than `command_timeout` are refused, see CommandAges.

        `read` converts a fresh message, or raises ValueError with a sentence. After a command, those of lower entrances
        are ignored for `command_timeout`. `Hold` decides whether commands are followed. A zero velocity that was taken
        late, or may be stale after a stall, ends the command from before.
        """
        is_stamped = "header" in message_type.get_fields_and_field_types()  # type: ignore[attr-defined]
        ages = CommandAges(self._node, topic, self._now) if is_stamped else None
        refusals: list[Refusal] = [non_finite_field, self._settling.refusal]
        if ages:
            refusals.append(ages.refusal)
        full_name = self._node.resolve_topic_name(topic)
        source = CommandTopic(topic, message_type, full_name, read, refusals, ages, entrance)
        if entrance is Entrance.HELM:
            self._node.make_subscription(message_type, topic, partial(self._receive_from_helm, source), stream())
        else:
            self._streams.add(message_type, topic, partial(self._receive, source), partial(self._stop, source))
            self._topics[topic] = source

    def _follow_publishers(self) -> None:
        """Report publishers of another type, and have cmd_vel follow theirs. Wakes the executor only for that."""
        ignored, commanders = [], None
        for topic in tuple(self._topics.values()):
            found, wanted = self._publishers(topic)
            commanders = commanders or self._others.look_for_programs(topic, found)
            if wanted is not topic.message_type:
                self._type_change.trigger()
            others = endpoints_by_type(
                each for each in found if each.topic_type != name_of_type(wanted) and each.node_name != UNKNOWN_NODE
            )
            if others:
                ignored.append({"topic": topic.full_name, "followed": name_of_type(wanted), "ignored": others})
        self._node.report.update_obstacle(Obstacle.OTHER_TYPE, ignored[0] if ignored else None)
        self._node.report.update_obstacle(Obstacle.COMMANDERS, commanders)

    def _publishers(self, topic: CommandTopic[RawT]) -> tuple[list[Any], type[Any]]:
        """Return the publishers of a topic but for our servers, and the type to follow."""
        found = self._node.get_publishers_info_by_topic(topic.full_name)
        found = independent(self._node, found, topic.message_type)
        return found, followed_type(topic.message_type, found) if topic.name == "cmd_vel" else topic.message_type

    def _change_type(self) -> None:
        """Subscribe to cmd_vel with the type of its publishers. A command of the former type ends. For the executor."""
        topic = self._topics["cmd_vel"]
        _, wanted = self._publishers(topic)
        if wanted is topic.message_type:
            return
        self.take(topic.name, wanted, topic.read)
        if self.arbiter.newest is topic.newest:
            self.arbiter.forget()
            self._on_command()  # so that the neutral command is sent now
        self._node.report.inform(f"{topic.full_name} is published as {name_of_type(wanted)}, and followed as that.")

    def _receive(self, topic: CommandTopic[RawT], message: Any) -> bool:
        """Handle a message of a program or controller. Return whether it is a command that is followed."""
        try:
            for refusal in topic.refusals:
                if reason := refusal(message):
                    raise ValueError(reason)
            command = topic.read(message)
        except ValueError as error:
            if self._settling.refusal(message) and self._stop(topic, message):
                return True
            self._refuse(topic, message, str(error))
            return False
        now_s = elapsed_s()
        is_zero = command == STILL if isinstance(command, BodyVelocity) else has_only_zeros(message)
        hold, counts = self._node.hold, self._node.report.counts
        if not self._was_commanded:
            self._look_at_first()
        if not hold.state.is_free:
            if not is_zero:  # an idle program ignores nobody
                self._report(partial(hold.admits, topic.name))
            return False
        if not self.arbiter.admits(topic.entrance, now_s):
            counts["overruled_commands"] += 1
            self._reports.overruled = topic, now_s
            return False
        counts[COMMANDS] += 1
        topic.gaps.received(is_zero, now_s)
        self._report(partial(self._node.undelivered, topic.name))
        stamp = topic.ages.stamp_of(message) if topic.ages else None
        stamp_read = stamp_numbers(stamp) if stamp else None
        topic.newest = Arrival(self._part(command), now_s, stamp_read, topic.entrance)
        self.arbiter.put(topic.newest)
        return True

    def _receive_from_helm(self, helm: CommandTopic[RawT], message: Any) -> None:
        """Handle a message of a person. A refused one takes the helm, too, and the vehicle is neutral."""
        if (isinstance(message, PilotCommand) and message.asks) or not self._node.hold.claim_helm(message):
            return
        try:
            for refusal in helm.refusals:
                if reason := refusal(message):
                    raise ValueError(reason)
            command = self._part(helm.read(message))
        except ValueError as error:
            self._refuse(helm, message, str(error))
            self._node.hold.take_helm(helm.name, str(error))
            return
        if not self._was_commanded:
            self._look_at_first()
        if not self._node.hold.take_helm(helm.name):
            return
        self._node.report.counts[COMMANDS] += 1
        if command == STILL and not self._holds_zero:
            self._forget()  # a centred stick: the neutral command holds this vehicle best
            return
        self._report(partial(self._node.undelivered, helm.name))
        stamp = helm.ages.stamp_of(message) if helm.ages else None
        stamp_read = stamp_numbers(stamp) if stamp else None
        self.arbiter.put(Arrival(command, elapsed_s(), stamp_read, Entrance.HELM))
        self._on_command()

    def _refuse(self, topic: CommandTopic[RawT], message: Any, reason: str) -> None:
        """Count a refused message, and log it; of a stream with a wrong clock, the first one."""
        report, now_s = self._node.report, elapsed_s()
        report.counts[REFUSED_COMMANDS] += 1
        is_aged = topic.ages is not None and topic.ages.refusal(message) is not None
        if not is_aged or now_s - topic.aged_s > CONDITION_ENDS_AFTER_S:
            sentence = f"A command on {topic.name} was refused: {reason}"
            self._report(partial(report.warn, sentence, REFUSED_COMMANDS))
        if is_aged:
            topic.aged_s = now_s

    def _stop(self, topic: CommandTopic[RawT], message: Any) -> bool:
        """End the newest command by a message that may be stale. Return whether the message is zero and may do so.

        That needs the precedence of the newest command.
        """
        is_first = self._node.hold.state.is_free and self.arbiter.admits(topic.entrance, elapsed_s())
        if not is_first or not topic.is_zero_velocity(message):
            return False
        self.arbiter.forget()
        return True

    def _look_at_first(self) -> None:
        """Look for other vehicles before the first command is followed, in the executor."""
        self._was_commanded = True
        self._others.look_for_vehicles()

    def _part(self, command: BodyVelocity | RawT) -> BodyVelocity | RawT:
        """Return a command without the axes that the vehicle lacks. Records one that has them."""
        if not isinstance(command, BodyVelocity) or not any(map(partial(getattr, command), self._lacking)):
            return command  # as usual
        self._reports.lacking = command, elapsed_s()
        return self._supported(command)

    def _supported(self, velocity: BodyVelocity) -> BodyVelocity:
        """Return a velocity on the axes that the vehicle has."""
        return replace(velocity, **self._lacking)

    def _forget(self) -> None:
        self._streams.drop_waiting()
        self.arbiter.forget()
        self._on_command()  # so that the neutral command is sent now
