# SPDX-License-Identifier: Apache-2.0
"""Commands: publishes the commands of a controller, and zero at the end.

Two states: publishing, until `leave` publishes zero, and left, in which nothing more goes out. A lock is held while
either is done, as `leave` may come from another thread, and its zero has to be the last.
"""

import contextlib
import threading
from typing import Any

from geometry_msgs.msg import Twist, Vector3
from rclpy.node import Node
from rclpy.publisher import Publisher

from drone_bridge.ros.parameters import DeclaredParameters
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS, wait_for_delivery
from drone_bridge.ros.velocity_messages import as_published, cmd_vel_type


class Commands:
    """Publishes commands until `leave`, which publishes zero. Thread-safe."""

    def __init__(self, publisher: "Publisher[Any]") -> None:
        self._publisher = publisher
        self._publishing = threading.Lock()  # as another thread may call leave, whose zero has to be the last
        self._has_left = False

    def zero(self) -> Any:
        """Return the message that moves nothing."""
        raise NotImplementedError

    def send(self, message: Any) -> None:
        """Publish a message, unless this was left."""
        with self._publishing:
            if not self._has_left:
                self._publish(message)

    def leave(self) -> None:
        """Publish zero, and then nothing more."""
        with self._publishing:
            if not self._has_left:
                self._publish(self.zero())
                wait_for_delivery(self._publisher)
            self._has_left = True

    def _publish(self, message: Any) -> None:
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._publisher.publish(message)


class VelocityCommands(Commands):
    """Velocities on cmd_vel."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        super().__init__(node.create_publisher(cmd_vel_type(parameters), "cmd_vel", 1, event_callbacks=NO_EVENTS))
        self._node = node

    def publish(self, velocity: tuple[float, float, float], turn: tuple[float, float, float]) -> None:
        """Publish a velocity (m/s) and an angular velocity (rad/s), both in body axes."""
        self.send(self._message(velocity, turn))

    def zero(self) -> Any:
        return self._message((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    def _message(self, velocity: tuple[float, float, float], turn: tuple[float, float, float]) -> Any:
        (x, y, z), (about_x, about_y, about_z) = velocity, turn
        twist = Twist(linear=Vector3(x=x, y=y, z=z), angular=Vector3(x=about_x, y=about_y, z=about_z))
        return as_published(twist, self._publisher, self._node)
