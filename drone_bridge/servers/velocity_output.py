# SPDX-License-Identifier: Apache-2.0
"""Publishes an operator's commands on cmd_vel while the operator is heard, then zero once, then nothing."""

import contextlib
import math
import time
from typing import Final

from geometry_msgs.msg import Twist
from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation

from drone_bridge.link_node.link_node import LinkNode

#: The count of operators that fell silent while they commanded something.
GONE: Final = "operators gone"
DEPTH: Final = 10
LAST_COMMAND_TIMEOUT_S: Final = 0.3  # for whoever listens to confirm it


class VelocityOutput:
    """Publishes commands at once and repeats them while they are in force. For the link's thread."""

    def __init__(self, node: LinkNode) -> None:
        """Create the publisher."""
        self._node = node
        self._publisher = node.make_publisher(Twist, "cmd_vel", DEPTH)
        self._followed: Twist | None = None
        self._given_s = -math.inf

    @property
    def is_followed(self) -> bool:
        """Whether a command is in force."""
        return self._followed is not None

    def command(self, twist: Twist) -> None:
        """Put a command into force."""
        self._followed, self._given_s = twist, time.monotonic()
        self._node.reports.end(GONE)
        self._publish(twist)

    def follow(self, operator: str) -> bool:
        """Publish the command in force once more, or zero after `command_timeout`; return whether it is in force.

        That an operator is gone is worth a warning if it has left another command than zero.
        """
        if self._followed is None:
            return False
        silent_s = time.monotonic() - self._given_s
        if silent_s <= self._node.parameters["command_timeout"]:
            self._publish(self._followed)
            return True
        if self._followed != Twist():
            sentence = f"{operator} was silent for {silent_s:.1f} s: zero was commanded."
            self._node.reports.complain_while(GONE, sentence)  # which no other complaint keeps from the log
        self.stop()
        return False

    def stop(self) -> None:
        """Leave zero, if anything is in force."""
        if self._followed is not None:
            self._followed = None
            self._publish(Twist())

    def leave(self) -> None:
        """Leave zero, and wait a moment for those who listen: ROS may be shut down next."""
        if not self.is_followed:
            return
        self.stop()
        with contextlib.suppress(rclpy_implementation.RCLError, InvalidHandle):
            self._publisher.wait_for_all_acked(Duration(seconds=LAST_COMMAND_TIMEOUT_S))

    def _publish(self, twist: Twist) -> None:
        self._node.publish(self._publisher, twist)
        self._node.statistics.counts["commands"] += 1
