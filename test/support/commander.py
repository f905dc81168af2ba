# SPDX-License-Identifier: Apache-2.0
"""The ROS side of a campaign: commands vehicles at 20 Hz, hears what servers command, and reads diagnostics."""

import contextlib
import threading
from collections import Counter
from collections.abc import Mapping, Sequence

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from relay import CommandLog

PERIOD_S = 0.05


class Commander:
    """Commands the vehicles of these topics while `is_commanding`, until it is closed."""

    def __init__(self, domain: int, topics: Sequence[str], heard: Mapping[str, CommandLog] | None = None) -> None:
        """`heard`: notes what others command, by topic."""
        self.is_commanding = False
        #: Of the last report of each node, all nodes together.
        self.counts: Counter[str] = Counter()
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node(f"commander_{domain}", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._reports: dict[str, Counter[str]] = {}
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._take_report, 10)
        self._publishers = [self._node.create_publisher(Twist, topic, 1) for topic in topics]
        for topic, log in (heard or {}).items():
            self._node.create_subscription(Twist, topic, lambda twist, log=log: log.note(_is_zero(twist)), 10)
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

    def _take_report(self, report: DiagnosticArray) -> None:
        for status in report.status:
            whole = {pair.key: int(pair.value) for pair in status.values if pair.value.isdigit()}
            self._reports[status.name] = Counter(whole)
        self.counts = sum(self._reports.values(), Counter())

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException, InvalidHandle):  # as it is closed
            self._executor.spin()


def _is_zero(twist: Twist) -> bool:
    return not any(getattr(part, axis) for part in (twist.linear, twist.angular) for axis in ("x", "y", "z"))
