# SPDX-License-Identifier: Apache-2.0
"""Odometry of drones by dead reckoning from their measured velocities, with a variance that grows."""

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.motion.quaternions import quaternion_from_euler, rotated_back
from drone_bridge.ros.topics.covariances import AXES, UNKNOWN_VARIANCE, OdometryCovariances
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.transforms import set_quaternion, set_vector

# Variances of x and y are initial values, to which drift is added.
POSE_VARIANCES = (1e-4, 1e-4, 1e-2, 3e-4, 3e-4, 3e-2)  # 1 cm, 10 cm, 1 and 10 degrees
TWIST_VARIANCES = (1e-2, 1e-2, *[UNKNOWN_VARIANCE] * 4)
TURN_VARIANCE = 0.1  # once it is known
ODOMETRY_COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)


def reckoned_odometry(pose: DeadReckonedPose, stamp: Time, names: FrameNames) -> Odometry:
    """Return a pose with the drift added to the covariances of x and y. While it is doubted, these are unknown."""
    message = Odometry(child_frame_id=names.base_link)
    message.header.stamp, message.header.frame_id = stamp, names.odom
    set_vector(message.pose.pose.position, (pose.x, pose.y, pose.z))
    set_quaternion(message.pose.pose.orientation, quaternion_from_euler(pose.roll, pose.pitch, pose.yaw))
    tilt = quaternion_from_euler(pose.roll, pose.pitch, 0.0)
    set_vector(message.twist.twist.linear, rotated_back(tilt, *pose.velocity))
    ODOMETRY_COVARIANCES.fill(message)
    if pose.turn is not None:
        message.twist.twist.angular.z, message.twist.covariance[-1] = pose.turn, TURN_VARIANCE
    for diagonal in (0, AXES + 1):
        message.pose.covariance[diagonal] = min(POSE_VARIANCES[0] + pose.variance, UNKNOWN_VARIANCE)
    return message
