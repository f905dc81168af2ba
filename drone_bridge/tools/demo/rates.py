# SPDX-License-Identifier: Apache-2.0
"""Topic rates, counted without deserializing messages."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from drone_bridge.tools.interfaces import import_interface

PERIOD_S: Final = 0.02
# For what may come within a period, and the latched messages of many nodes at once.
DEPTH: Final = 50


class ExpectedTopic(NamedTuple):
    """A topic that is expected, by its full name."""

    name: str
    type_name: str
    rate_hz: float | None = None  # None: latched, or published on events


class RateMeter(Node):
    """Counts the messages of topics, and keeps the diagnostics of their publishers.

    Subscriptions are polled at a fixed period. rclpy's executor would iterate over all of them for every
    message, which takes a processor core of its own at the rates at which this is used.
    """

    def __init__(self, topics: Sequence[ExpectedTopic]) -> None:
        super().__init__("rate_meter")
        self.counts: Counter[str] = Counter()
        self.diagnostics: dict[str, dict[str, str]] = {}  # by the name of the status
        self._topics = topics
        self._measured_s = 0.0
        latched = QoSProfile(depth=DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._subscriptions_by_name: dict[str, Any] = {
            topic.name: self.create_subscription(
                import_interface(topic.type_name),
                topic.name,
                lambda _: None,
                DEPTH if topic.rate_hz else latched,
                raw=True,
            )
            for topic in topics
        }
        self._diagnostics = self.create_subscription(DiagnosticArray, "/diagnostics", lambda _: None, DEPTH)
        self._pause = threading.Event()

    def wait_for_all(self, timeout_s: float, keep_going: Callable[[], bool] = lambda: True) -> bool:
        """Wait for a message on every topic while `keep_going()`; return False if one is missing at the time-out."""
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s and keep_going():
            self._poll()
            if all(self.counts[topic.name] for topic in self._topics):
                return True
            self._pause.wait(PERIOD_S)
        return False

    def measure(self, duration_s: float, keep_going: Callable[[], bool] = lambda: True) -> None:
        """Count for a while, as long as `keep_going()`; topics with rates start from 0."""
        self._poll()
        for topic in self._topics:
            if topic.rate_hz:
                self.counts[topic.name] = 0
        began_s = time.monotonic()
        while time.monotonic() < began_s + duration_s and keep_going():
            self._pause.wait(PERIOD_S)
            self._poll()
        self._measured_s = time.monotonic() - began_s

    def rate_hz(self, topic: ExpectedTopic) -> float:
        """Return the rate of the topic while it was measured."""
        return self.counts[topic.name] / self._measured_s if self._measured_s else 0.0

    def _poll(self) -> None:
        for name, subscription in self._subscriptions_by_name.items():
            self.counts[name] += sum(1 for _ in _taken(subscription, raw=True))
        for report in _taken(self._diagnostics, raw=False):
            for status in report.status:
                self.diagnostics[status.name] = {pair.key: pair.value for pair in status.values}


def _taken(subscription: Any, raw: bool) -> Iterator[Any]:
    """Yield what has arrived since the last poll, at most a full queue."""
    with subscription.handle:
        for _ in range(DEPTH):
            taken = subscription.handle.take_message(subscription.msg_type, raw)
            if taken is None:
                return
            yield taken[0]
