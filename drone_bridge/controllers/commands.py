# SPDX-License-Identifier: Apache-2.0
"""VelocityCommands: publishes the velocities of a controller, and finally zero.

It publishes until `leave` publishes zero, and nothing afterwards. `leave` may be called from another thread. A lock
therefore serializes both methods, so that the zero is the last message.
"""

import threading
from typing import Any

from rclpy.node import Node

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.ros.commands.cmd_vel_type import FOLLOWING_PERIOD_S, CmdVelPublisher
from drone_bridge.ros.commands.velocity_messages import twist_from_velocity
from drone_bridge.ros.publishers import NO_EVENTS, try_publish, wait_for_delivery
from drone_bridge.ros.steady_timer import steady_timer


class VelocityCommands:
    """Publisher of velocities on cmd_vel, up to the zero that `leave` publishes. Thread-safe."""

    def __init__(self, node: Node) -> None:
        self._publisher: Any = CmdVelPublisher(
            node, lambda kind: node.create_publisher(kind, "cmd_vel", 1, event_callbacks=NO_EVENTS)
        )
        steady_timer(node, FOLLOWING_PERIOD_S, self._follow_subscribers)
        self._publishing = threading.RLock()
        self._has_left = False

    def publish(self, velocity: BodyVelocity = STILL) -> None:
        """Publish a velocity. Ignored after `leave`."""
        twist = twist_from_velocity(velocity)
        with self._publishing:
            if not self._has_left:
                try_publish(self._publisher, twist)

    def leave(self) -> None:
        """Publish zero, and stop publishing."""
        with self._publishing:
            if not self._has_left:
                self.publish()
                wait_for_delivery(self._publisher)
            self._has_left = True

    def _follow_subscribers(self) -> None:
        with self._publishing:
            if not self._has_left and (wanted := self._publisher.wanted()) is not self._publisher.msg_type:
                self._publisher.change(wanted)
