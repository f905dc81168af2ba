# SPDX-License-Identifier: Apache-2.0
"""Drive or fly forward at 0.2 m/s until Ctrl-C, on any vehicle that takes cmd_vel; it stops when commands cease."""

import contextlib

import rclpy
from geometry_msgs.msg import Twist, Vector3
from rclpy.executors import ExternalShutdownException

rclpy.init()
node = rclpy.create_node("driver")
publisher = node.create_publisher(Twist, "cmd_vel", 1)
node.create_timer(0.1, lambda: publisher.publish(Twist(linear=Vector3(x=0.2))))
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
