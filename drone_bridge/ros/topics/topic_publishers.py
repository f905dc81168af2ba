# SPDX-License-Identifier: Apache-2.0
"""TopicPublishers: publishers for a bridge's rows of a table, which convert messages only for subscribers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from builtin_interfaces.msg import Time
from rclpy.publisher import Publisher
from tf2_msgs.msg import TFMessage

from drone_bridge.ros.node.pose_restarts import report_restarts
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.table import Topic

if TYPE_CHECKING:
    from geometry_msgs.msg import TransformStamped

    from drone_bridge.ros.node.protocol_node import ProtocolNode

#: Default period of the checks for new subscribers.
SUBSCRIBER_CHECK_PERIOD_S = 0.2


@dataclass(slots=True)
class _Offer:
    """Publisher, and function that converts a wire message and a stamp to its message, or None."""

    publisher: Publisher[Any]
    make: Callable[[Any, Time], Any]
    is_always_made: bool
    """Whether messages are made even without subscribers."""


@dataclass(slots=True)
class _Offers:
    """Topics of one kind of wire message, whose messages are published together."""

    all: list[_Offer] = field(default_factory=list)
    wanted: list[_Offer] = field(default_factory=list)
    checked_s: float = -math.inf


class TopicPublishers:
    """Publishers of a bridge's topics. Each kind of wire message is for one thread.

    DDS is queried for subscribers only once per `period_s`: a query can take longer than all but publishing.
    """

    def __init__(
        self,
        node: ProtocolNode,
        table: Iterable[Topic],
        translation: Any,
        static_transforms: Iterable[TransformStamped] = (),
        *,
        period_s: float = SUBSCRIBER_CHECK_PERIOD_S,
        make_publisher: Callable[[Topic], Publisher[Any]] | None = None,
    ) -> None:
        """Create the publishers.

        Args:
            node: the bridge.
            table: the rows. Those without `to_ros`, or whose parameter is false, are skipped.
            translation: the first argument of the rows' functions.
            static_transforms: static transforms, published with the first wire message.
            period_s: the period of the checks for new subscribers.
            make_publisher: creates the publisher of a row; default: `node.make_publisher`.
        """
        self._node, self._period_s = node, period_s
        self._static = list(static_transforms)
        self._is_static_sent = False
        self._last: dict[Any, Any] = {}  # last message of rows with `only_changes`, by publisher
        self._offers: dict[tuple[type, bool], _Offers] = {}  # by kind of wire message and `is_slow`
        publishers: dict[str, Publisher[Any]] = {}
        for row in table:
            if row.to_ros is None or (row.if_parameter and not node.parameters[row.if_parameter]):
                continue
            if row.name not in publishers:
                made = make_publisher(row) if make_publisher else node.make_publisher(row.message, row.name, row.qos())
                publishers[row.name] = made
            publisher = publishers[row.name]
            make: Callable[[Any, Time], Any] = partial(row.to_ros, translation)
            if row.count:
                make = partial(self._counted, row.count, make)
            if row.only_changes:
                make = partial(self._changed, publisher, make)
            offers = self._offers.setdefault((row.of, row.is_slow), _Offers())
            offers.all.append(_Offer(publisher, make, row.only_changes))
        if "odom" in publishers:
            report_restarts(node)
        self._publishers = tuple(publishers.values())
        self._static_publisher = node.make_publisher(TFMessage, "/tf_static", latched()) if self._static else None

    def restart(self) -> None:
        """Publish static transforms and unchanged messages again, with the next wire message."""
        self._is_static_sent = False
        self._last.clear()
        for offers in self._offers.values():
            offers.checked_s = -math.inf

    def publish(self, wire: Any, stamp: Time) -> None:
        """Publish a wire message on its topics, slow conversions last."""
        if not self._is_static_sent:
            self._broadcast_static(stamp)
        for is_slow in (False, True):
            self._node.publish_all(self.made(wire, stamp, is_slow=is_slow))

    def made(self, wire: Any, stamp: Time, *, is_slow: bool = False) -> list[tuple[Publisher[Any], Any]]:
        """Convert a wire message to the messages of its topics, each with its publisher.

        All are converted before any is published: publishing wakes a thread of DDS, cheapest if still awake.
        """
        if (offers := self._offers.get((type(wire), is_slow))) is None:
            return []
        now_s = time.monotonic()
        if now_s - offers.checked_s > self._period_s:
            offers.checked_s, is_wanted = now_s, self._node.is_wanted
            offers.wanted = [each for each in offers.all if each.is_always_made or is_wanted(each.publisher)]
        return [
            (offer.publisher, message) for offer in offers.wanted if (message := offer.make(wire, stamp)) is not None
        ]

    def _changed(self, publisher: Publisher[Any], make: Callable[[Any, Time], Any], wire: Any, stamp: Time) -> Any:
        """Return the message, or None if it equals the last one."""
        message = make(wire, stamp)
        if message is None or message == self._last.get(publisher):
            return None
        self._last[publisher] = message
        return message

    def _counted(self, count: str, make: Callable[[Any, Time], Any], wire: Any, stamp: Time) -> Any:
        """Return the message, and count it."""
        message = make(wire, stamp)
        if message is not None:
            self._node.report.counts[count] += 1
        return message

    def _broadcast_static(self, stamp: Time) -> None:
        self._is_static_sent = True
        if self._static_publisher:
            for transform in self._static:
                transform.header.stamp = stamp
            self._node.publish(self._static_publisher, TFMessage(transforms=self._static))
