# SPDX-License-Identifier: Apache-2.0
"""Topics: QoS profiles, subscriptions to whatever is offered, and the tables that say what a protocol has on topics."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from builtin_interfaces.msg import Time
from rclpy.callback_groups import CallbackGroup
from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import PublisherEventCallbacks  # type: ignore[attr-defined] # where humble has it, too
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from rclpy.subscription import Subscription
from tf2_msgs.msg import TFMessage

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

if TYPE_CHECKING:
    from geometry_msgs.msg import TransformStamped
    from rclpy.node import Node
    from rclpy.publisher import Publisher
    from rclpy.qos_overriding_options import QoSOverridingOptions

    from drone_bridge.ros.vehicle_node import VehicleNode


# QoS profiles: a new one each time, because overrides change them.


def latched() -> QoSProfile:
    """Return the QoS of topics whose last message late subscribers get as well."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def newest() -> QoSProfile:
    """Return the QoS of topics on which a newer message replaces one that was not taken in time."""
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def command_stream() -> QoSProfile:
    """Return the QoS of a subscription to a stream of commands, which moves the vehicle.

    A reliable writer's samples come again after a stall, up to seconds later: of 17 bridges that had been stopped for
    2 s under a live commander, 7 carried out an old command, and with best effort none. A command that is lost is
    followed by the next one. Publishers of commands, ours too, may offer more: they stay reliable for subscribers that
    request that, as a bag does. Single events, such as a take-off, are taken reliably.
    """
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


# What publishing can raise, and waiting until the last message of a publisher is delivered.


DELIVERY_TIMEOUT_S = 0.3
#: A writer of reliable messages was overrun, or ROS is already shutting down.
PUBLISHER_ERRORS = (rclpy_implementation.RCLError, InvalidHandle)


def wait_for_delivery(publisher: Publisher[Any]) -> None:
    """Wait for subscribers to acknowledge the last message, as ROS may be shut down next."""
    with contextlib.suppress(*PUBLISHER_ERRORS):
        publisher.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT_S))


# Publishers that ignore subscribers with an incompatible QoS, as those log a warning themselves.


NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)


# Subscriptions that receive from every publisher of their topic, whatever QoS it offers. One that requests earlier
# messages (transient local) or lost ones (reliable) gets nothing at all from a publisher that does not offer that; a
# second one, which requests less, receives from such publishers.


_CONSEQUENCES = {
    QoSPolicyKind.DURABILITY: "without durability transient_local, so that earlier messages are not received",
    QoSPolicyKind.RELIABILITY: "without reliability reliable, so that lost messages are not sent again",
}


def subscribe(
    node: Node,
    message_type: type,
    topic: str,
    callback: Callable[[Any], Any],
    qos: QoSProfile | int,
    *,
    callback_group: CallbackGroup | None = None,
    overridable: QoSOverridingOptions | None = None,
    keep: Callable[[Any], None] = lambda subscription: None,
) -> None:
    """Subscribe to all publishers of a topic: with this QoS, or depth, and with less to those that offer less.

    That happens as soon as such a publisher is discovered, and is logged. From then on, messages of those that offer
    more arrive twice. `keep` gets each of the subscriptions; `overridable` is for the first one.
    """
    made: set[tuple[DurabilityPolicy, ReliabilityPolicy]] = set()

    def create(wanted: QoSProfile, events: Any) -> Any:
        return node.create_subscription(
            message_type,
            topic,
            callback,
            copy.copy(wanted),  # an override changes the profile that it is given, and others may have the same
            callback_group=callback_group,
            event_callbacks=events,
            qos_overriding_options=None if made else overridable,  # a topic has those parameters once
        )

    def add(wanted: QoSProfile) -> None:
        def on_incompatible(info: Any) -> None:
            less = _without(subscription.qos_profile, info.last_policy_kind)
            if less and (less.durability, less.reliability) not in made:
                name = node.resolve_topic_name(topic)
                node.get_logger().info(f"{name} is published {_CONSEQUENCES[info.last_policy_kind]}.")
                add(less)

        try:
            # No other event: each that an executor waits for makes each of its waits dearer.
            events = SubscriptionEventCallbacks(incompatible_qos=on_incompatible, use_default_callbacks=False)
            subscription = create(wanted, events)
        except UnsupportedEventTypeError:  # as where every subscription hears every publisher
            subscription = create(wanted, None)
        made.add((subscription.qos_profile.durability, subscription.qos_profile.reliability))
        keep(subscription)

    add(QoSProfile(depth=qos) if isinstance(qos, int) else qos)


def arrived(subscription: Any, at_most: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the messages, or their bytes, that wait on a subscription now, each with what the middleware knows of it.

    For nodes that follow many topics: rclpy's executor takes one message of each topic every time it waits, and its
    wait costs time per subscription. Beside 800 others it took 46 of 1,280 messages per second.
    """
    with subscription.handle:
        for _ in range(at_most):  # a topic that is faster than its reader has to leave time for others
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if not taken:
                return
            yield taken


# Subscriptions that no executor waits for: what arrives wakes nobody, and is taken when its owner wants it.


# An executor that waits for an event of a subscription returns at once while a message waits there, which it does not
# take: with the events that rclpy handles by default, the recorder costs a core.
UNWATCHED = SubscriptionEventCallbacks(use_default_callbacks=False)


class Polled(CallbackGroup):
    """Subscriptions that no executor waits for."""

    def can_execute(self, entity: Any) -> bool:
        return not isinstance(entity, Subscription)

    def beginning_execution(self, entity: Any) -> bool:
        return True

    def ending_execution(self, entity: Any) -> None:
        pass


class PolledTopic:
    """The newest message of a topic, for those who look regularly: a stream wakes nobody for each of its messages.

    From publishers of any QoS; what is lost is followed by the next one. For the executor.
    """

    def __init__(self, node: Node, message_type: type, topic: str) -> None:
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._subscription: Any = node.create_subscription(
            message_type, topic, lambda _: None, qos, callback_group=Polled(), event_callbacks=UNWATCHED
        )

    def take(self) -> Any:
        """Return the newest message that has come since the last call, or None."""
        newest = None
        for message, _ in arrived(self._subscription, 2):
            newest = message
        return newest


def _without(qos: QoSProfile, kind: QoSPolicyKind) -> QoSProfile | None:
    """Return the profile without this policy's request; None if it requests nothing known here."""
    less = copy.copy(qos)
    if kind == QoSPolicyKind.DURABILITY:
        less.durability = DurabilityPolicy.VOLATILE
    elif kind == QoSPolicyKind.RELIABILITY:
        less.reliability = ReliabilityPolicy.BEST_EFFORT
    else:
        return None
    return less


# Topics whose messages are made only while they have subscribers.


#: How long a new subscriber may go unnoticed, for want of a reason to choose otherwise.
SUBSCRIBER_CHECK_PERIOD_S = 0.2

SourceT = TypeVar("SourceT")


class Output(NamedTuple):
    """A topic, and the function that makes its message, or None, from a source and a stamp."""

    publisher: Publisher[Any]
    make: Callable[[Any, Time], Any]


class Outputs(Generic[SourceT]):
    """The topics of one source, such as a camera frame or the state of an entity.

    DDS is queried for subscribers only now and then: a query can take longer than anything but publishing.
    """

    def __init__(
        self, node: VehicleNode, outputs: Iterable[Output], period_s: float = SUBSCRIBER_CHECK_PERIOD_S
    ) -> None:
        """`period_s` is how long a new subscriber may go unnoticed."""
        self._node = node
        self._outputs = tuple(outputs)
        self._period_s = period_s
        self._wanted: list[Output] = []
        self.recheck()

    def recheck(self) -> None:
        """Query the subscribers again before the next publication."""
        self._checked_s = -math.inf

    def wanted(self) -> list[Output]:
        now_s = time.monotonic()
        if now_s - self._checked_s > self._period_s:
            self._checked_s = now_s
            self._wanted = [output for output in self._outputs if self._node.is_wanted(output.publisher)]
        return self._wanted

    def publish(self, source: SourceT, stamp: Time) -> None:
        """Make and publish the messages that have subscribers."""
        self._node.publish_all(self.made(source, stamp))

    def made(self, source: SourceT, stamp: Time) -> list[tuple[Publisher[Any], Any]]:
        """Return the messages that have subscribers, each with its publisher."""
        # All are made first: each one published wakes a thread of DDS, which costs least when it is still awake.
        return [(topic, message) for topic, make in self.wanted() if (message := make(source, stamp)) is not None]


# Tables of topics: each topic of a protocol is one row, which bridge, server, reference page and tests go by.


def queued() -> QoSProfile:
    """Return the QoS of topics each of whose messages counts."""
    return QoSProfile(depth=10)


def sensor_data() -> QoSProfile:
    """Return the QoS of a subscription that every publisher satisfies."""
    return qos_profile_sensor_data


class MissingTopicError(ValueError):
    """A value without which no wire message can be made is on no topic; the text says which topic would have it."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of a protocol. A name beginning with / is that of the whole system, others are the vehicle's.

    A name with {name} in it is a pattern, for topics that depend on what the vehicle has.
    """

    name: str
    message: type[Any]
    of: type[Any]
    """The wire message that it comes from. The rows of one are made first, then published together."""
    to_ros: Callable[[Any, Any, Time], Any] | None = None
    """(translation, wire message, stamp) to a message, or None for nothing to say."""
    from_ros: Callable[[Any, Any], Any] | None = None
    """(translation, message) to a value of the wire message, or None for none."""
    qos: Callable[[], QoSProfile] = queued
    requested: Callable[[], QoSProfile] = sensor_data
    if_parameter: str = ""
    """The parameter of the bridge that has to be true for the topic to be offered."""
    is_slow: bool = False
    """Made after all others have been published."""
    only_changes: bool = False
    lasts: bool = False
    """Whether a server goes on using the last message, instead of while it is fresh."""
    fresh_s: float | None = None
    """For how long a server uses a message, unless that is `source_timeout`."""
    count: str = ""
    """What each message counts as in diagnostics."""
    meaning: str = ""
    needed: str = ""
    """What happens to a server that takes it where nobody publishes it, in a clause; empty: only its values are left
    out of what goes to the operator."""
    instead: tuple[str, ...] = ()
    """Topics one of which is enough instead."""


@dataclass(frozen=True, slots=True)
class TopicTable:
    """All of a protocol: the rows, a translation by the defaults, and how several topics make one wire message."""

    rows: tuple[Topic, ...]
    make_translation: Callable[[], Any]
    assembled: dict[type[Any], Callable[[Any, Callable[[str], Any], Time], Any]]
    """By wire message: (translation, what gives the value of a topic or None, stamp) to it."""
    parts: Callable[[Any, Any], Iterable[tuple[str, Any]]] = lambda translation, wire: ()
    """(translation, wire message) to the topics of rows with patterns, each with what its message is made of."""

    def row(self, topic: str) -> Topic:
        """Return the row of a topic, which may be that of a pattern. Raises KeyError."""
        for row in self.rows:
            before, is_pattern, after = row.name.partition("{name}")
            if topic == row.name or (is_pattern and topic.startswith(before) and topic.endswith(after)):
                return row
        raise KeyError(topic)


class TopicPublishers:
    """The topics that a bridge offers. The messages of one kind of wire message are for one thread."""

    def __init__(
        self,
        node: VehicleNode,
        table: Sequence[Topic],
        translation: Any,
        static_transforms: Iterable[TransformStamped] = (),
        more: Iterable[tuple[type, Output]] = (),
        *,
        period_s: float = SUBSCRIBER_CHECK_PERIOD_S,
    ) -> None:
        """Make the publishers. `more` are outputs that no table has, each with the wire message that it comes from.

        `period_s` is how long a new subscriber may go unnoticed.
        """
        self._node = node
        self._static = list(static_transforms)
        self._changes: dict[type, list[Output]] = {}
        self._last: dict[Any, Any] = {}  # what only changes are published of, by publisher
        self._is_static_told = False
        publishers: dict[str, Any] = {}
        outputs: dict[tuple[type, bool], list[Output]] = {}
        for kind, output in more:
            outputs.setdefault((kind, False), []).append(output)
        for row in table:
            if row.to_ros is None or (row.if_parameter and not node.parameters[row.if_parameter]):
                continue
            if row.name not in publishers:
                publishers[row.name] = node.make_publisher(row.message, row.name, row.qos())
            make: Callable[[Any, Time], Any] = partial(row.to_ros, translation)
            output = Output(publishers[row.name], self._counted(make, row.count) if row.count else make)
            if row.only_changes:
                self._changes.setdefault(row.of, []).append(output)
            else:
                outputs.setdefault((row.of, row.is_slow), []).append(output)
        self._offered = tuple(publishers.values())
        self._outputs: dict[tuple[type, bool], Outputs[Any]]
        self._outputs = {key: Outputs(node, each, period_s) for key, each in outputs.items()}
        self._static_publisher = node.make_publisher(TFMessage, "/tf_static", latched()) if self._static else None

    def wait_for_subscribers(self, timeout_s: float) -> None:
        """Wait until those who subscribed before these topics were offered hear them; some may never."""
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s and any(
            self._node.count_subscribers(each.topic_name) > each.get_subscription_count() for each in self._offered
        ):
            time.sleep(0.005)

    def restart(self) -> None:
        """Publish again, with the next wire message, what is published only when it changes."""
        self._is_static_told = False
        self._last.clear()
        for outputs in self._outputs.values():
            outputs.recheck()

    def publish(self, wire: Any, stamp: Time) -> None:
        """Publish what a wire message says on the topics that have subscribers."""
        kind = type(wire)
        if not self._is_static_told:
            self._broadcast_static(stamp)
        if quick := self._outputs.get((kind, False)):
            quick.publish(wire, stamp)
        for publisher, make in self._changes.get(kind, ()):
            message = make(wire, stamp)
            if message is not None and message != self._last.get(publisher):
                self._last[publisher] = message
                self._node.publish(publisher, message)
        if slow := self._outputs.get((kind, True)):
            slow.publish(wire, stamp)

    def _counted(self, make: Callable[[Any, Time], Any], count: str) -> Callable[[Any, Time], Any]:
        def counted(wire: Any, stamp: Time) -> Any:
            message = make(wire, stamp)
            if message is not None:
                self._node.statistics.counts[count] += 1
            return message

        return counted

    def _broadcast_static(self, stamp: Time) -> None:
        self._is_static_told = True
        if self._static_publisher:
            for transform in self._static:
                transform.header.stamp = stamp
            self._node.publish(self._static_publisher, TFMessage(transforms=self._static))


# What a server hears on the topics of its table.


class TopicSubscriptions:
    """The topics that a server takes: the newest message of each. Written in the executor, read by any thread."""

    def __init__(
        self,
        node: VehicleNode,
        table: Sequence[Topic],
        translation: Any,
        take: Callable[[str, Any], None] | None = None,
    ) -> None:
        """Subscribe, in the order of the table, which the executor keeps to.

        `take` gets topic and message where these are to be looked at before `put` keeps them, which it has to call.
        """
        self._node, self._translation = node, translation
        self._rows = {row.name: row for row in table if row.from_ros}
        self._received: dict[str, tuple[Any, float]] = {}  # the message and when it came, by topic
        for row in self._rows.values():
            node.make_subscription(row.message, row.name, partial(take or self.put, row.name), row.requested())

    def message(self, topic: str) -> Any:
        """Return the newest message of a topic while it counts, or None."""
        message, came_s = self._received.get(topic, (None, 0.0))
        row = self._rows.get(topic)
        if message is None or (row and row.lasts):
            return message
        allowed_s = row.fresh_s if row and row.fresh_s else self._node.parameters["source_timeout"]
        return message if time.monotonic() - came_s <= allowed_s else None

    def value(self, topic: str) -> Any:
        """Return what the newest message of a topic says on the wire, or None."""
        message, row = self.message(topic), self._rows.get(topic)
        if message is None or row is None or row.from_ros is None:
            return None
        return row.from_ros(self._translation, message)

    def put(self, topic: str, message: Any) -> None:
        """Replace the message of a topic."""
        self._received[topic] = message, time.monotonic()
