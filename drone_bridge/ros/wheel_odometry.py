# SPDX-License-Identifier: Apache-2.0
"""WheelOdometry: dead reckoning of wheeled vehicles, from the speeds of their two sides, to poses in a plane."""

import math
from typing import NamedTuple

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.covariances import UNKNOWN_VARIANCE, OdometryCovariances
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.transforms import set_quaternion

# A skid steer has a left and a right side that each run forward or backward, and no frames.


def wheel_speeds_from_body(forward: float, left_turn: float, separation: float) -> tuple[float, float]:
    """Return the speeds of the left and the right side, m/s, for linear x in m/s and angular z in rad/s of the body.

    `separation` is the distance between the sides in m. To turn left, the right side has to be the faster one.
    """
    return forward - left_turn * separation / 2, forward + left_turn * separation / 2


def body_from_wheel_speeds(left: float, right: float, separation: float) -> tuple[float, float]:
    """Return linear x in m/s and angular z in rad/s of the body for the speeds of its sides, m/s."""
    return (left + right) / 2, (right - left) / separation


# Poses in a plane.


class Pose(NamedTuple):
    """A position in m and a yaw in rad, 0 along x, positive to the left."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def moved(self, seconds: float, forward: float, turn: float) -> "Pose":
        """Return the pose after moving along an arc, at m/s and rad/s to the left."""
        turned = turn * seconds
        # The chord of the arc, whose direction is halfway between those at its ends.
        chord = forward * seconds * (math.sin(turned / 2) / (turned / 2) if turned else 1.0)
        return self.seeing(Pose(chord * math.cos(turned / 2), chord * math.sin(turned / 2), turned))

    def seeing(self, other: "Pose") -> "Pose":
        """Return a pose given relative to this one in this one's frame."""
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


#: Of x, y, z (m²), and about them (rad²). Errors add up without end, and nothing corrects them.
POSE_VARIANCES = (UNKNOWN_VARIANCE,) * 6
#: In (m/s)², (rad/s)²: what was commanded, of tracks that slip.
TWIST_VARIANCES = (0.1, 0.1, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, 0.5)
_COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)


class WheelOdometry:
    """A pose that starts at the origin along x and integrates velocities."""

    def __init__(self) -> None:
        self.pose = Pose()
        self._velocity = (0.0, 0.0)

    def advance(self, seconds: float, forward: float, turn: float) -> None:
        """Advance with a velocity in m/s and a turn rate in rad/s."""
        self.at(self.pose.moved(seconds, forward, turn), forward, turn)

    def at(self, pose: Pose, forward: float, turn: float) -> None:
        """Set the pose, with a velocity in m/s and a turn rate in rad/s."""
        self.pose = pose
        self._velocity = (forward, turn)

    @property
    def motion(self) -> tuple[float, tuple[float, float, float], tuple[float, float, float]]:
        """Yaw, rad, position, m, and velocity, m/s, in odom."""
        (x, y, yaw), (forward, _) = self.pose, self._velocity
        return yaw, (x, y, 0.0), (forward * math.cos(yaw), forward * math.sin(yaw), 0.0)

    def message(self, stamp: Time, names: FrameNames) -> Odometry:
        """Return pose and velocity, with covariances for unmeasured odometry."""
        message = Odometry(child_frame_id=names.base_link)
        message.header.stamp = stamp
        message.header.frame_id = names.odom
        message.pose.pose.position.x, message.pose.pose.position.y, yaw = self.pose
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, yaw))
        message.twist.twist.linear.x, message.twist.twist.angular.z = self._velocity
        _COVARIANCES.fill(message)
        return message
