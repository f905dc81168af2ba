# SPDX-License-Identifier: Apache-2.0
"""Publishes an operator's commands on cmd_vel, zero once when the operator is silent, and then nothing."""

import contextlib
import math
import time
from typing import Final

from geometry_msgs.msg import Twist
from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation

from drone_bridge.link_node.link_node import LinkNode

#: The count of operators that fell silent while commanding a motion.
OPERATORS_LOST: Final = "operators gone"
DEPTH: Final = 10
LAST_COMMAND_TIMEOUT_S: Final = 0.3  # for subscribers to acknowledge it


class VelocityOutput:
    """Publishes commands at once, and again with each `repeat` until they time out. For the link's thread."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self._publisher = node.make_publisher(Twist, "cmd_vel", DEPTH)
        self._command: Twist | None = None
        self._commanded_s = -math.inf

    @property
    def is_active(self) -> bool:
        """Whether a command is in force."""
        return self._command is not None

    def command(self, twist: Twist) -> None:
        """Publish a new command."""
        self._command, self._commanded_s = twist, time.monotonic()
        self._node.reports.end(OPERATORS_LOST)
        self._publish(twist)

    def repeat(self, operator: str) -> bool:
        """Publish the command again, or zero after `command_timeout`; return whether it is still in force."""
        if self._command is None:
            return False
        silent_s = time.monotonic() - self._commanded_s
        if silent_s <= self._node.parameters["command_timeout"]:
            self._publish(self._command)
            return True
        if self._command != Twist():
            sentence = f"{operator} was silent for {silent_s:.1f} s: zero was commanded."
            self._node.reports.complain_while(OPERATORS_LOST, sentence)
        self.stop()
        return False

    def stop(self) -> None:
        """Publish zero, if a command is in force."""
        if self._command is not None:
            self._command = None
            self._publish(Twist())

    def finish(self) -> None:
        """Publish zero, if a command is in force, and wait for its delivery, as ROS may be shut down next."""
        if not self.is_active:
            return
        self.stop()
        with contextlib.suppress(rclpy_implementation.RCLError, InvalidHandle):
            self._publisher.wait_for_all_acked(Duration(seconds=LAST_COMMAND_TIMEOUT_S))

    def _publish(self, twist: Twist) -> None:
        self._node.publish(self._publisher, twist)
        self._node.statistics.counts["commands"] += 1
