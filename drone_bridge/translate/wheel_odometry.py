# SPDX-License-Identifier: Apache-2.0
"""Dead reckoning: where a robot would be if it had done what it was told."""

import math

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.translate import frames
from drone_bridge.translate.transforms import set_quaternion


class WheelOdometry:
    """A pose that starts at the origin, looking along x, and follows velocities along arcs."""

    def __init__(self) -> None:
        self.x = 0.0  # m
        self.y = 0.0  # m
        self.yaw = 0.0  # rad, to the left
        self._forward = 0.0
        self._turn = 0.0

    def advance(self, seconds: float, forward: float, turn: float) -> None:
        """Move for some time with a velocity in m/s and a turn rate in rad/s."""
        turned = turn * seconds
        # The chord of the arc, whose direction is halfway between those at its ends.
        chord = forward * seconds * (math.sin(turned / 2) / (turned / 2) if turned else 1.0)
        self.x += chord * math.cos(self.yaw + turned / 2)
        self.y += chord * math.sin(self.yaw + turned / 2)
        self.yaw = math.remainder(self.yaw + turned, 2 * math.pi)
        self._forward, self._turn = forward, turn

    def message(self, stamp: Time, frame_prefix: str) -> Odometry:
        """Return pose and velocity. Nothing was measured: the covariances say that they are unknown."""
        message = Odometry(child_frame_id=f"{frame_prefix}base_link")
        message.header.stamp = stamp
        message.header.frame_id = f"{frame_prefix}odom"
        message.pose.pose.position.x, message.pose.pose.position.y = self.x, self.y
        set_quaternion(message.pose.pose.orientation, frames.quaternion_from_euler(0.0, 0.0, self.yaw))
        message.twist.twist.linear.x, message.twist.twist.angular.z = self._forward, self._turn
        message.pose.covariance[0] = message.twist.covariance[0] = -1.0
        return message
