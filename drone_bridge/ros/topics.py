# SPDX-License-Identifier: Apache-2.0
"""TopicTable: what a protocol has on topics, a row for each, with the publishers and subscriptions made from it.

Bridge (TopicPublishers), server (TopicSubscriptions), reference page and tests go by the same table. The publishers of
one kind of wire message belong to one thread, in a node the link's. What a server hears is written in the executor and
read by any thread without a lock: the newest message of a topic, with its time, is replaced as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage

from drone_bridge.ros.outputs import SUBSCRIBER_CHECK_PERIOD_S, Output, Outputs
from drone_bridge.ros.qos import latched, queued, sensor_data

if TYPE_CHECKING:
    from geometry_msgs.msg import TransformStamped

    from drone_bridge.ros.vehicle_node import VehicleNode


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
        self._is_static_sent = False
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
        self._is_static_sent = False
        self._last.clear()
        for outputs in self._outputs.values():
            outputs.recheck()

    def publish(self, wire: Any, stamp: Time) -> None:
        """Publish what a wire message says on the topics that have subscribers."""
        kind = type(wire)
        if not self._is_static_sent:
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
        self._is_static_sent = True
        if self._static_publisher:
            for transform in self._static:
                transform.header.stamp = stamp
            self._node.publish(self._static_publisher, TFMessage(transforms=self._static))


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
