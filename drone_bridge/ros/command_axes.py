# SPDX-License-Identifier: Apache-2.0
"""Shares of full deflections as CommandAxes, and back; and as the velocities that they stand for."""

from typing import NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist

from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes


def shares_from_axes(message: CommandAxes) -> Shares:
    """Return what a cmd_axes says."""
    return Shares(message.thrust, message.pitch, message.roll, message.yaw)


def axes_from_shares(shares: Shares, stamp: Time, frame_id: str) -> CommandAxes:
    """Return shares as a cmd_axes, along and about the axes of a frame."""
    message = CommandAxes(thrust=shares.thrust, pitch=shares.pitch, roll=shares.roll, yaw=shares.yaw)
    message.header.stamp, message.header.frame_id = stamp, frame_id
    return message


class FullScale(NamedTuple):
    """The velocities that full deflections stand for, m/s and rad/s."""

    thrust: float = 1.0  # linear.z
    pitch: float = 1.0  # linear.x
    roll: float = 1.0  # linear.y
    yaw: float = 1.0  # angular.z


def twist_from_shares(shares: Shares, full_scale: FullScale) -> Twist:
    """Return shares as a cmd_vel."""
    twist = Twist()
    twist.linear.x = full_scale.pitch * shares.pitch
    twist.linear.y = 0.0 - full_scale.roll * shares.roll
    twist.linear.z = full_scale.thrust * shares.thrust
    twist.angular.z = full_scale.yaw * shares.yaw
    return twist
