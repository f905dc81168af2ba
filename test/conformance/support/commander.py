# SPDX-License-Identifier: Apache-2.0
"""ROS side of measurements: commands vehicles at 20 Hz, receives servers' commands, and reads diagnostics."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from relay import CommandLog

from drone_bridge.ros.distributions import with_info

PERIOD_S = 0.05


class Commander:
    """Publisher of commands on these topics while `is_commanding`, until it is closed."""

    def __init__(self, domain: int, topics: Sequence[str], heard: Mapping[str, CommandLog] | None = None) -> None:
        """`heard`: records other publishers' commands by topic, with their times of publication."""
        self.is_commanding = False
        #: Number of published commands by topic.
        self.published = 0
        #: Counters of the last report of each node, summed.
        self.counts: Counter[str] = Counter()
        #: Number of reports by status.
        self.reports: Counter[str] = Counter()
        #: Last reported state of each link, by the status's name.
        self.states: dict[str, str] = {}
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node(f"commander_{domain}", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._last_reports: dict[str, Counter[str]] = {}
        # Offset from the system's time to time.monotonic, from the pair of readings with the smallest delay.
        self._offset_s = max(time.monotonic() - time.time() for _ in range(10))
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._take_report, 10)
        self._publishers = [self._node.create_publisher(Twist, topic, 1) for topic in topics]
        for topic, log in (heard or {}).items():
            self._node.create_subscription(Twist, topic, _with_sending_time(partial(self._hear, log)), 10)
        self._node.create_timer(PERIOD_S, self._command)
        self._thread = threading.Thread(target=self._spin, name="commander")
        self._thread.start()

    def close(self) -> None:
        """Stop, and shut ROS down."""
        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _command(self) -> None:
        if not self.is_commanding:
            return
        twist = Twist()
        twist.linear.x, twist.angular.z = 0.2, 0.1
        for publisher in self._publishers:
            publisher.publish(twist)
        self.published += 1

    def _hear(self, log: CommandLog, twist: Twist, sent_s: float | None) -> None:
        log.note(_is_zero(twist), None if sent_s is None else sent_s + self._offset_s)

    def _take_report(self, report: DiagnosticArray) -> None:
        for status in report.status:
            whole = {pair.key: int(pair.value) for pair in status.values if pair.value.isdigit()}
            self._last_reports[status.name] = Counter(whole)
            self.reports[status.name] += 1
            self.states[status.name] = next((pair.value for pair in status.values if pair.key == "state"), "")
        self.counts = sum(self._last_reports.values(), Counter())

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException, InvalidHandle):  # as it is closed
            self._executor.spin()


def _with_sending_time(callback: Callable[[Twist, float | None], None]) -> Callable[..., None]:
    """Return a callback for a subscription that passes on a message with its time of sending, if known."""
    return with_info(lambda message, info: callback(message, info.get("source_timestamp", 0) / 1e9 or None))


def _is_zero(twist: Twist) -> bool:
    return not any(getattr(part, axis) for part in (twist.linear, twist.angular) for axis in ("x", "y", "z"))
