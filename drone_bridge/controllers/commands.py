# SPDX-License-Identifier: Apache-2.0
"""VelocityCommands: publishes the velocities of a controller, and finally zero.

It publishes until `leave` publishes zero, and nothing afterwards. `leave` may be called from another thread. A lock
therefore serializes both methods, so that the zero is the last message.
"""

import contextlib
import threading

from rclpy.node import Node

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.ros.commands.velocity_messages import as_published, cmd_vel_type, twist_from_velocity
from drone_bridge.ros.node.parameters import DeclaredParameters
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS, wait_for_delivery


class VelocityCommands:
    """Publisher of velocities on cmd_vel, up to the zero that `leave` publishes. Thread-safe."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._publisher = node.create_publisher(cmd_vel_type(parameters), "cmd_vel", 1, event_callbacks=NO_EVENTS)
        self._publishing = threading.RLock()
        self._has_left = False

    def publish(self, velocity: BodyVelocity = STILL) -> None:
        """Publish a velocity. Ignored after `leave`."""
        twist = twist_from_velocity(velocity)
        with self._publishing:
            if not self._has_left:
                with contextlib.suppress(*PUBLISHER_ERRORS):
                    self._publisher.publish(as_published(twist, self._publisher, self._node))

    def leave(self) -> None:
        """Publish zero, and stop publishing."""
        with self._publishing:
            if not self._has_left:
                self.publish()
                wait_for_delivery(self._publisher)
            self._has_left = True
