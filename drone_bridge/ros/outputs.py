# SPDX-License-Identifier: Apache-2.0
"""Outputs: topics whose messages are made only while they have subscribers. For one thread."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from builtin_interfaces.msg import Time
from rclpy.publisher import Publisher

if TYPE_CHECKING:
    from drone_bridge.ros.protocol_node import ProtocolNode

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
        self, node: ProtocolNode, outputs: Iterable[Output], period_s: float = SUBSCRIBER_CHECK_PERIOD_S
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
