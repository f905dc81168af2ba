# SPDX-License-Identifier: Apache-2.0
"""WheelOdometry: dead reckoning of skid-steered vehicles, from the speeds of their sides to planar poses."""

import math
from typing import NamedTuple

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.covariances import UNKNOWN_VARIANCE, OdometryCovariances
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.transforms import set_quaternion

# Kinematics of a skid steer, whose left and right sides each run forward or backward.


def wheel_speeds_from_body(forward: float, left_turn: float, separation: float) -> tuple[float, float]:
    """Return the speeds of the left and right sides, m/s, for linear x, m/s, and angular z, rad/s, of the body.

    `separation` is the distance between the sides, m. In a left turn the right side is faster.
    """
    return forward - left_turn * separation / 2, forward + left_turn * separation / 2


def body_from_wheel_speeds(left: float, right: float, separation: float) -> tuple[float, float]:
    """Return linear x, m/s, and angular z, rad/s, of the body for the speeds of its sides, m/s."""
    return (left + right) / 2, (right - left) / separation


# Planar poses.


class Pose(NamedTuple):
    """Planar pose: position, m, and yaw, rad, 0 along x, positive to the left."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def moved(self, seconds: float, forward: float, turn: float) -> "Pose":
        """Return the pose after motion along an arc, at `forward`, m/s, and `turn`, rad/s to the left."""
        turned = turn * seconds
        # Chord of the arc. Its direction is the mean of those at both ends.
        chord = forward * seconds * (math.sin(turned / 2) / (turned / 2) if turned else 1.0)
        return self.seeing(Pose(chord * math.cos(turned / 2), chord * math.sin(turned / 2), turned))

    def seeing(self, other: "Pose") -> "Pose":
        """Transform a pose relative to this one into this one's reference frame."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return Pose(
            self.x + cos * other.x - sin * other.y,
            self.y + sin * other.x + cos * other.y,
            math.remainder(self.yaw + other.yaw, math.tau),
        )

    def seen_from(self, base: "Pose") -> "Pose":
        """Return this pose relative to another one in the same frame."""
        x, y = self.x - base.x, self.y - base.y
        cos, sin = math.cos(base.yaw), math.sin(base.yaw)
        return Pose(cos * x + sin * y, cos * y - sin * x, math.remainder(self.yaw - base.yaw, math.tau))


# Dead reckoning from commanded velocities.


#: Variances of x, y, z (m²), and about them (rad²). Errors accumulate without a correction.
POSE_VARIANCES = (UNKNOWN_VARIANCE,) * 6
#: Variances, (m/s)² and (rad/s)²: velocities are commanded values, and tracks slip.
TWIST_VARIANCES = (0.1, 0.1, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, 0.5)
_COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)


class WheelOdometry:
    """Dead-reckoned pose, which starts at the origin along x and integrates velocities."""

    def __init__(self) -> None:
        self.pose = Pose()
        self._velocity = (0.0, 0.0)

    def advance(self, seconds: float, forward: float, turn: float) -> None:
        """Integrate a velocity, m/s, and a turn rate, rad/s."""
        self.at(self.pose.moved(seconds, forward, turn), forward, turn)

    def at(self, pose: Pose, forward: float, turn: float) -> None:
        """Set the pose, a velocity, m/s, and a turn rate, rad/s."""
        self.pose = pose
        self._velocity = (forward, turn)

    @property
    def motion(self) -> tuple[float, tuple[float, float, float], tuple[float, float, float]]:
        """Yaw, rad, and position, m, in the odom frame, and velocity in level axes, m/s."""
        x, y, yaw = self.pose
        return yaw, (x, y, 0.0), (self._velocity[0], 0.0, 0.0)

    def message(self, stamp: Time, names: FrameNames) -> Odometry:
        """Return the odometry message, with covariances of unmeasured odometry."""
        message = Odometry(child_frame_id=names.base_link)
        message.header.stamp = stamp
        message.header.frame_id = names.odom
        message.pose.pose.position.x, message.pose.pose.position.y, yaw = self.pose
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, yaw))
        message.twist.twist.linear.x, message.twist.twist.angular.z = self._velocity
        _COVARIANCES.fill(message)
        return message
