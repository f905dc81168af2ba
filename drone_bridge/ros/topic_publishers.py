# SPDX-License-Identifier: Apache-2.0
"""TopicPublishers: the topics of a table that a bridge offers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from builtin_interfaces.msg import Time
from tf2_msgs.msg import TFMessage

from drone_bridge.ros.outputs import SUBSCRIBER_CHECK_PERIOD_S, Output, Outputs
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics import Topic

if TYPE_CHECKING:
    from geometry_msgs.msg import TransformStamped

    from drone_bridge.ros.protocol_node import ProtocolNode


class TopicPublishers:
    """The topics that a bridge offers. The messages of one kind of wire message are for one thread."""

    def __init__(
        self,
        node: ProtocolNode,
        table: Sequence[Topic],
        translation: Any,
        static_transforms: Iterable[TransformStamped] = (),
        *,
        period_s: float = SUBSCRIBER_CHECK_PERIOD_S,
    ) -> None:
        """Make the publishers; `period_s` is how long a new subscriber may go unnoticed."""
        self._node = node
        self._static = list(static_transforms)
        self._changes: dict[type, list[Output]] = {}
        self._last: dict[Any, Any] = {}  # what only changes are published of, by publisher
        self._is_static_sent = False
        publishers: dict[str, Any] = {}
        outputs: dict[tuple[type, bool], list[Output]] = {}
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
                self._node.report.counts[count] += 1
            return message

        return counted

    def _broadcast_static(self, stamp: Time) -> None:
        self._is_static_sent = True
        if self._static_publisher:
            for transform in self._static:
                transform.header.stamp = stamp
            self._node.publish(self._static_publisher, TFMessage(transforms=self._static))
