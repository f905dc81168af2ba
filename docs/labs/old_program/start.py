# SPDX-License-Identifier: Apache-2.0
"""Your vehicle: follows cmd_vel, and says where it is."""

import contextlib

import rclpy
from geometry_msgs.msg import Twist
from rclpy.node import Node


class Vehicle(Node):
    """Hears what it is to do."""

    def __init__(self):
        super().__init__("vehicle")
        self.create_subscription(Twist, "cmd_vel", self.on_command, 1)
        self.create_timer(0.5, lambda: print("at 0.00 0.00, 0.00 rad", flush=True))

    def on_command(self, twist):
        """Note a command: m/s ahead, rad/s to the left."""


if __name__ == "__main__":
    rclpy.init()
    with contextlib.suppress(KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
        rclpy.spin(Vehicle())
