# SPDX-License-Identifier: Apache-2.0
"""Publishes cmd_vel of a controller, and zero at the end."""

import contextlib
import threading

from geometry_msgs.msg import Twist
from rclpy.node import Node

from drone_bridge.ros.topics import PUBLISHER_ERRORS, wait_for_delivery


class VelocityCommands:
    """Publishes velocities until `leave`, which publishes zero. Thread-safe."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(Twist, "cmd_vel", 1)
        self._publishing = threading.Lock()  # as another thread may call leave, whose zero has to be the last
        self._has_left = False

    def publish(self, velocity: tuple[float, float, float], turn: tuple[float, float, float]) -> None:
        """Publish a velocity (m/s) and an angular velocity (rad/s), both in body axes."""
        with self._publishing:
            if not self._has_left:
                self._publish(velocity, turn)

    def leave(self) -> None:
        """Publish zero, and then nothing more."""
        with self._publishing:
            if not self._has_left:
                self._publish((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
                wait_for_delivery(self._publisher)
            self._has_left = True

    def _publish(self, velocity: tuple[float, float, float], turn: tuple[float, float, float]) -> None:
        message = Twist()
        message.linear.x, message.linear.y, message.linear.z = velocity
        message.angular.x, message.angular.y, message.angular.z = turn
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._publisher.publish(message)
