# SPDX-License-Identifier: Apache-2.0
"""Parsing and validation of poses and angles, and ErrorLog for invalid messages."""

import numpy as np
from geometry_msgs.msg import Quaternion as QuaternionMessage
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu

from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.motion.matrices import Vector, rotation_from_angles
from drone_bridge.motion.quaternions import euler_from_quaternion, unit_quaternion
from drone_bridge.ros.node.log_limiter import LogLimiter

Angles = tuple[float, float, float]  # roll, pitch and yaw of REP 103, rad

# Largest coordinate accepted from odometry, m. Beyond it, computations may overflow.
_FARTHEST = 1e9


def read_angles(imu: Imu, topic: str) -> Angles | None:
    """Return roll, pitch and yaw of REP 103, rad, or None if the message has no orientation.

    Raises ValueError with a sentence if the orientation is not a rotation.
    """
    return None if imu.orientation_covariance[0] < 0 else _angles(imu.orientation, topic)


def read_pose(odometry: Odometry, topic: str) -> tuple[Vector, Angles]:
    """Return position, m, and roll, pitch and yaw, rad. Raises ValueError with a sentence for an invalid pose."""
    at = odometry.pose.pose.position
    position = np.array([at.x, at.y, at.z])
    if not (np.abs(position) <= _FARTHEST).all():
        raise ValueError(
            f"the position in {topic} is ({at.x}, {at.y}, {at.z}) but must be within {_FARTHEST:g} m of the origin."
        )
    return position, _angles(odometry.pose.pose.orientation, topic)


def _angles(q: QuaternionMessage, topic: str) -> Angles:
    if (unit := unit_quaternion(q)) is None:
        raise ValueError(f"the orientation in {topic} is ({q.x}, {q.y}, {q.z}, {q.w}) but must have length 1.")
    return euler_from_quaternion(unit)


class ErrorLog:
    """Rate-limited log of errors in messages."""

    def __init__(self, node: Node) -> None:
        self._node, self._limiter = node, LogLimiter()

    def log(self, sentence: str) -> None:
        if line := self._limiter.admit(sentence):
            self._node.get_logger().error(line)


def read_odometry(message: Odometry, errors: ErrorLog) -> VehiclePose | None:
    """Return the pose of a message. An invalid one is logged, and gives None."""
    try:
        position, angles = read_pose(message, "odom")
    except ValueError as error:
        errors.log(f"Odometry can't be used: {error}")
        return None
    return VehiclePose(position, rotation_from_angles(*angles))
