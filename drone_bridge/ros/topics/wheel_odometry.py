# SPDX-License-Identifier: Apache-2.0
"""Odometry of wheels and tracks, by dead reckoning from commanded velocities, and the variances of such odometry."""

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE, OdometryCovariances
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.transforms import set_quaternion

#: Variances of x, y, z (m²), and about them (rad²). Errors accumulate without a correction.
POSE_VARIANCES = (UNKNOWN_VARIANCE,) * 6
#: Variances, (m/s)² and (rad/s)²: velocities are commanded values, and tracks slip.
TWIST_VARIANCES = (0.1, 0.1, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, 0.5)
COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)


def wheel_odometry(
    pose: PlanarPose,
    velocity: BodyVelocity,
    stamp: Time,
    names: FrameNames,
    covariances: OdometryCovariances = COVARIANCES,
) -> Odometry:
    """Return the odometry message of a pose in odom and a velocity. By default, nothing is measured."""
    message = Odometry(child_frame_id=names.base_link)
    message.header.stamp = stamp
    message.header.frame_id = names.odom
    message.pose.pose.position.x, message.pose.pose.position.y, yaw = pose
    set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, yaw))
    message.twist.twist.linear.x, message.twist.twist.angular.z = velocity.forward, velocity.turn
    covariances.fill(message)
    return message
