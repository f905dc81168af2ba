# SPDX-License-Identifier: Apache-2.0
"""VelocityCommands: publishes the velocities of a controller, and zero at the end.

Two states: publishing, until `leave` publishes zero, and left, in which nothing more goes out. A lock is held while
either is done, as `leave` may come from another thread, and its zero has to be the last.
"""

import contextlib
import threading

from geometry_msgs.msg import Twist, Vector3
from rclpy.node import Node

from drone_bridge.motion.matrices import Triple
from drone_bridge.ros.parameters import DeclaredParameters
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS, wait_for_delivery
from drone_bridge.ros.velocity_messages import as_published, cmd_vel_type

STILL: Triple = (0.0, 0.0, 0.0)


class VelocityCommands:
    """Publishes velocities on cmd_vel until `leave`, which publishes zero. Thread-safe."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._publisher = node.create_publisher(cmd_vel_type(parameters), "cmd_vel", 1, event_callbacks=NO_EVENTS)
        self._publishing = threading.RLock()
        self._has_left = False

    def publish(self, velocity: Triple = STILL, turn: Triple = STILL) -> None:
        """Publish a velocity (m/s) and an angular velocity (rad/s), both in body axes, unless this was left."""
        (x, y, z), (about_x, about_y, about_z) = velocity, turn
        twist = Twist(linear=Vector3(x=x, y=y, z=z), angular=Vector3(x=about_x, y=about_y, z=about_z))
        with self._publishing:
            if not self._has_left:
                with contextlib.suppress(*PUBLISHER_ERRORS):
                    self._publisher.publish(as_published(twist, self._publisher, self._node))

    def leave(self) -> None:
        """Publish zero, and then nothing more."""
        with self._publishing:
            if not self._has_left:
                self.publish()
                wait_for_delivery(self._publisher)
            self._has_left = True
