# SPDX-License-Identifier: Apache-2.0
"""Commands all vehicles of a campaign at 20 Hz, and reads the diagnostics of their bridges."""

import contextlib
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from pairs import Pair
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

PERIOD_S = 0.05


class Commander:
    """Commands the pairs whose `is_commanded` is true, until it is closed."""

    def __init__(self, pairs: Sequence[Pair], domain: int) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("commander", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        #: By namespace: the counts of each bridge's last report.
        self.counts: dict[str, Counter[str]] = {}
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._take_report, 10)
        self._publishers = [(pair, self._publisher(pair)) for pair in pairs]
        self._node.create_timer(PERIOD_S, self._command)
        self._thread = threading.Thread(target=self._spin, name="commander")
        self._thread.start()

    def close(self) -> None:
        """Stop, and shut ROS down."""
        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _publisher(self, pair: Pair) -> Any:
        return self._node.create_publisher(Twist, f"/{pair.namespace}/cmd_vel", 1)

    def _command(self) -> None:
        twist = Twist()
        twist.linear.x, twist.angular.z = 0.2, 0.1
        for pair, publisher in self._publishers:
            if not pair.is_commanded:
                continue
            publisher.publish(twist)

    def _take_report(self, report: DiagnosticArray) -> None:
        for status in report.status:
            whole = {pair.key: int(pair.value) for pair in status.values if pair.value.isdigit()}
            self.counts[status.name.split("/")[0]] = Counter(whole)

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()
