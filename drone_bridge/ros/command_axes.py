# SPDX-License-Identifier: Apache-2.0
"""Shares of full deflections as CommandAxes, and back."""

from builtin_interfaces.msg import Time

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
