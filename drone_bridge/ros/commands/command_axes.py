# SPDX-License-Identifier: Apache-2.0
"""Conversions between shares of full deflections and CommandAxes, and from shares to velocities."""

from typing import NamedTuple

from builtin_interfaces.msg import Time

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes


def shares_from_axes(message: CommandAxes) -> Shares:
    """Convert a cmd_axes message to shares."""
    return Shares(message.thrust, message.pitch, message.roll, message.yaw)


def axes_from_shares(shares: Shares, stamp: Time, frame_id: str) -> CommandAxes:
    """Convert shares to a cmd_axes message, along and about the axes of a frame."""
    message = CommandAxes(thrust=shares.thrust, pitch=shares.pitch, roll=shares.roll, yaw=shares.yaw)
    message.header.stamp, message.header.frame_id = stamp, frame_id
    return message


class FullScale(NamedTuple):
    """Velocities at full deflections, m/s and rad/s."""

    thrust: float = 1.0  # linear.z
    pitch: float = 1.0  # linear.x
    roll: float = 1.0  # linear.y
    yaw: float = 1.0  # angular.z


def velocity_from_shares(shares: Shares, full_scale: FullScale) -> BodyVelocity:
    """Convert shares to the equivalent velocity."""
    return BodyVelocity(
        full_scale.pitch * shares.pitch,
        0.0 - full_scale.roll * shares.roll,
        full_scale.thrust * shares.thrust,
        turn=full_scale.yaw * shares.yaw,
    )
