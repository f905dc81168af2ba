# SPDX-License-Identifier: Apache-2.0
"""Drive or fly forward at 0.2 m/s until Ctrl-C, on any vehicle that takes cmd_vel; it stops when commands cease."""

import contextlib

import rclpy
from geometry_msgs.msg import Twist, Vector3
from rclpy.executors import ExternalShutdownException
from std_msgs.msg import Bool

from drone_bridge.ros.qos import latched


def say(held: Bool) -> None:
    """Print whether the vehicle follows commands; who holds it is on the page, and in its bridge's log."""
    print("Held: `drone-bridge resume` lets it follow commands." if held.data else "It follows commands.", flush=True)


rclpy.init()
node = rclpy.create_node("driver")
node.create_subscription(Bool, "held", say, latched())
publisher = node.create_publisher(Twist, "cmd_vel", 1)
node.create_timer(0.1, lambda: publisher.publish(Twist(linear=Vector3(x=0.2))))
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
