# SPDX-License-Identifier: Apache-2.0
"""Transforms between tf frames, and conversions of vectors and rotations to messages."""

from collections.abc import Iterable

from geometry_msgs.msg import Point, TransformStamped, Vector3
from geometry_msgs.msg import Quaternion as QuaternionMessage
from nav_msgs.msg import Odometry

from drone_bridge.motion.quaternions import IDENTITY, Quaternion
from drone_bridge.ros.topics.frames import DOWN_IN_BODY, DroneFrameNames


def transform(
    parent: str, child: str, translation: tuple[float, float, float] = (0.0, 0.0, 0.0), rotation: Quaternion = IDENTITY
) -> TransformStamped:
    """Return the pose of the child in the parent, without a stamp. The translation is in m."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    set_vector(message.transform.translation, translation)
    set_quaternion(message.transform.rotation, rotation)
    return message


def rangefinder_transform(names: DroneFrameNames) -> TransformStamped:
    """Return the transform from base_link to a drone's rangefinder, which points down."""
    return transform(names.base_link, names.altimeter, rotation=DOWN_IN_BODY)


def set_vector(message: Point | Vector3, value: Iterable[float]) -> None:
    """Write x, y and z into a message."""
    message.x, message.y, message.z = value


def set_quaternion(message: QuaternionMessage, value: Quaternion) -> None:
    """Write a rotation into a message."""
    message.x, message.y, message.z, message.w = value


def odometry_transform(message: Odometry) -> TransformStamped:
    """Convert the pose of an odometry message to a transform with the same stamp."""
    position, orientation = message.pose.pose.position, message.pose.pose.orientation
    rotation = Quaternion(orientation.x, orientation.y, orientation.z, orientation.w)
    moved = transform(message.header.frame_id, message.child_frame_id, (position.x, position.y, position.z), rotation)
    moved.header.stamp = message.header.stamp
    return moved
