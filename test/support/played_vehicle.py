# SPDX-License-Identifier: Apache-2.0
"""Vehicle in ROS played by a test: cmd_vel in, odom out."""

import math

import numpy as np
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.topics.transforms import set_quaternion

PERIOD_S = 0.02


class Vehicle:
    """Vehicle that follows cmd_vel and publishes odometry."""

    def __init__(self, ros):
        self.position = np.zeros(3)
        self.yaw = 0.0
        self._twist = Twist()
        self._publisher = ros.node.create_publisher(Odometry, "odom", 1)
        ros.node.create_subscription(Twist, "cmd_vel", self._hear, 1)
        ros.node.create_timer(PERIOD_S, self._move)

    def _hear(self, twist):
        self._twist = twist

    def _move(self):
        linear, turn = self._twist.linear, self._twist.angular.z
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        self.position += PERIOD_S * np.array(
            [cos * linear.x - sin * linear.y, sin * linear.x + cos * linear.y, linear.z]
        )
        self.yaw += PERIOD_S * turn
        self._publisher.publish(self.odometry())

    def odometry(self):
        message = Odometry(child_frame_id="base_link")
        message.header.frame_id = "odom"
        position = message.pose.pose.position
        position.x, position.y, position.z = self.position.tolist()
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, self.yaw))
        return message
