# SPDX-License-Identifier: Apache-2.0
"""StatusPublisher: publishes the status of a node's link on /diagnostics, a topic shared by all vehicles."""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.publisher import Publisher

from drone_bridge.ros.node.link_report import LINK_STATUS
from drone_bridge.ros.publishers import NO_EVENTS, has_subscribers, try_publish

_DEPTH = 10


class StatusPublisher:
    """Publisher on /diagnostics that works in every lifecycle state. Thread-safe."""

    def __init__(self, node: Node, now: Callable[[], Time]) -> None:
        """Create the publisher. `now` returns the stamps."""
        self._now = now
        #: Name of each status.
        self.name = f"{node.get_fully_qualified_name().lstrip('/')}{LINK_STATUS}"
        self._publisher: Publisher[Any] = node.create_publisher(
            DiagnosticArray, "/diagnostics", _DEPTH, event_callbacks=NO_EVENTS
        )

    @property
    def is_wanted(self) -> bool:
        """Whether the topic has subscribers."""
        return has_subscribers(self._publisher)

    def publish(self, status: DiagnosticStatus) -> None:
        """Publish a status, unless ROS is being shut down."""
        report = DiagnosticArray(status=[status])
        report.header.stamp = self._now()
        try_publish(self._publisher, report)
