# SPDX-License-Identifier: Apache-2.0
"""VelocityCommands: publishes the velocities of a controller, and finally zero.

Our bridges follow `cmd_vel_goal`, which any program's `cmd_vel` overrules, and `cmd_vel_landing`, which overrules
these. Other vehicles only follow `cmd_vel`.

It publishes until `leave` publishes zero, and nothing afterwards. `leave` may be called from another thread. A lock
therefore serializes both methods, so that the zero is the last message.
"""

import threading
from typing import Any

from geometry_msgs.msg import Twist
from rclpy.node import Node

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.ros.commands.cmd_vel_type import (
    FOLLOWING_PERIOD_S,
    CmdVelPublisher,
    bridges,
    followers,
    goal_topics,
)
from drone_bridge.ros.commands.velocity_messages import twist_from_velocity
from drone_bridge.ros.publishers import NO_EVENTS, try_publish, wait_for_delivery
from drone_bridge.ros.steady_timer import steady_timer


class VelocityCommands:
    """Publisher of velocities on cmd_vel, up to the zero that `leave` publishes. Thread-safe."""

    def __init__(self, node: Node) -> None:
        self._node, self._topic = node, goal_topics(node)[0]
        self._landing: Any = None  # publisher, from the first landing on
        self._publisher: Any = CmdVelPublisher(
            node, lambda kind: node.create_publisher(kind, self._topic, 1, event_callbacks=NO_EVENTS)
        )
        steady_timer(node, FOLLOWING_PERIOD_S, self._follow_subscribers)
        self._publishing = threading.RLock()
        self._has_left = False

    def publish(self, velocity: BodyVelocity = STILL, *, lands: bool = False) -> None:
        """Publish a velocity, perhaps of a landing. Ignored after `leave`."""
        twist, topics = twist_from_velocity(velocity), goal_topics(self._node)
        with self._publishing:
            if self._has_left:
                return
            is_landing = lands and self._topic == topics[0]
            if is_landing and not self._landing:
                self._landing = self._node.create_publisher(Twist, topics[1], 1, event_callbacks=NO_EVENTS)
            try_publish(self._landing if is_landing else self._publisher, twist)

    def leave(self) -> None:
        """Publish zero, and stop publishing."""
        with self._publishing:
            if not self._has_left:
                for lands in {False, bool(self._landing)}:
                    self.publish(lands=lands)
                wait_for_delivery(self._publisher)
            self._has_left = True

    def _follow_subscribers(self) -> None:
        with self._publishing:
            if self._has_left:
                return
            before, own = self._topic, goal_topics(self._node)[0]
            is_other = not bridges(self._node, own) and followers(self._node, "cmd_vel")
            self._topic = "cmd_vel" if is_other else own
            if self._topic != before:
                self._publisher.change(self._publisher.msg_type)
            if (wanted := self._publisher.wanted()) is not self._publisher.msg_type:
                self._publisher.change(wanted)
