# SPDX-License-Identifier: Apache-2.0
"""ROS vehicle that an old program drives: it follows cmd_vel, and publishes its odometry and battery."""

import math

import rclpy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import BatteryState

PERIOD_S = 0.02
#: Time without a command after which it stops by itself: nothing else stops it if its driver's machine fails.
COMMAND_TIMEOUT_S = 0.5


class Vehicle(Node):
    """Vehicle with two wheels on a plane, without inertia."""

    def __init__(self):
        super().__init__("vehicle")
        self.x = self.y = self.yaw = 0.0  # m, and rad to the left
        self.twist, self.silent_s = Twist(), 0.0
        self.odometry = self.create_publisher(Odometry, "odom", 10)
        self.battery = self.create_publisher(BatteryState, "battery_state", 10)
        self.create_subscription(Twist, "cmd_vel", self.on_command, 1)
        self.create_timer(PERIOD_S, self.move)
        self.create_timer(0.5, self.report)

    def on_command(self, twist):
        """Handle a command: m/s ahead, rad/s to the left."""
        self.twist, self.silent_s = twist, 0.0

    def move(self):
        """Move for one period, and publish position and velocity."""
        self.silent_s += PERIOD_S
        if self.silent_s > COMMAND_TIMEOUT_S:
            self.twist = Twist()
        self.yaw += PERIOD_S * self.twist.angular.z
        self.x += PERIOD_S * self.twist.linear.x * math.cos(self.yaw)
        self.y += PERIOD_S * self.twist.linear.x * math.sin(self.yaw)
        message = Odometry(child_frame_id="base_link")
        message.header.frame_id, message.header.stamp = "odom", self.get_clock().now().to_msg()
        message.pose.pose.position.x, message.pose.pose.position.y = self.x, self.y
        message.pose.pose.orientation.z = math.sin(self.yaw / 2)
        message.pose.pose.orientation.w = math.cos(self.yaw / 2)
        message.twist.twist = self.twist
        self.odometry.publish(message)

    def report(self):
        """Print the position, and publish the state of the battery."""
        print(f"at {self.x:.2f} {self.y:.2f}, {self.yaw:.2f} rad", flush=True)
        self.battery.publish(BatteryState(voltage=12.3, percentage=0.8, present=True))


if __name__ == "__main__":
    rclpy.init()
    try:
        rclpy.spin(Vehicle())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        if rclpy.ok():  # otherwise ROS was shut down during a publication
            raise
