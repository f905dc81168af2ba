# SPDX-License-Identifier: Apache-2.0
"""Publishes an operator's commands on cmd_vel, and zero when the operator is silent."""

import math

from geometry_msgs.msg import Twist

from drone_bridge.ros.last_word import LastWord
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.stall_watch import elapsed_s
from drone_bridge.ros.topics import wait_for_delivery

#: The count of operators that fell silent while commanding a motion.
OPERATORS_LOST = "operators gone"
DEPTH = 10


class VelocityOutput:
    """Publishes commands at once, and again with each `repeat` until they time out. For the link's thread."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self._publisher = node.make_publisher(Twist, "cmd_vel", DEPTH)
        self._last_word = LastWord(node, (self._publisher,), lambda: (self._publisher, Twist()))
        self._command: Twist | None = None
        self._commanded_s = -math.inf

    @property
    def is_active(self) -> bool:
        """Whether a command is in force."""
        return self._command is not None

    @property
    def is_last_word(self) -> bool:
        """Whether zero is the last that anybody told the vehicle, as far as is known."""
        return self._last_word.age_s is not None

    def command(self, twist: Twist) -> None:
        # If this process stands still anywhere from here on, the command is too old when it goes on; before, the next
        # line notices. What was read earlier would be in force for another `command_timeout`.
        commanded_s = elapsed_s()
        if not self._node.takes_commands():
            return
        self._command, self._commanded_s = twist, commanded_s
        self._node.reports.end_ongoing(OPERATORS_LOST)
        self._publish(twist)

    def repeat(self, operator: str) -> bool:
        """Publish the command again, or zero after `command_timeout`; return whether it is still in force."""
        if self._command is None:
            return False
        silent_s = elapsed_s() - self._commanded_s
        if silent_s <= self._node.parameters["command_timeout"]:
            self._publish(self._command)
            return True
        if self._command != Twist():
            sentence = f"{operator} was silent for {silent_s:.1f} s: zero was commanded."
            self._node.reports.count_and_warn_ongoing(OPERATORS_LOST, sentence)
        self.stop()
        return False

    def stop(self) -> None:
        """Publish zero, if a command is in force."""
        if self._command is not None:
            self._command = None
            self._publish(Twist())

    def finish(self) -> None:
        """Publish zero, if a command is in force, and wait for its delivery."""
        if not self.is_active:
            return
        self.stop()
        wait_for_delivery(self._publisher)

    def _publish(self, twist: Twist) -> None:
        self._last_word.publish(self._publisher, twist)
        self._node.statistics.counts["commands"] += 1
