# SPDX-License-Identifier: Apache-2.0
"""Transforms between tf frames."""

import struct
from collections.abc import Iterable
from typing import Final

from geometry_msgs.msg import Quaternion as QuaternionMessage
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import IDENTITY, Quaternion
from drone_bridge.ros.message_template import ENCAPSULATION, STAMP, MessageTemplate

_COUNT: Final = struct.Struct("=I")  # of the transforms in a TFMessage, before the first of them


def transform(
    parent: str,
    child: str,
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0),
    rotation: Quaternion = IDENTITY,
) -> TransformStamped:
    """Return the pose of the child in the parent, without a stamp; translation in m."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    vector = message.transform.translation
    vector.x, vector.y, vector.z = translation
    set_quaternion(message.transform.rotation, rotation)
    return message


def set_quaternion(message: QuaternionMessage, value: Quaternion) -> None:
    """Write a rotation into a message."""
    message.x, message.y, message.z, message.w = value


def odometry_transform(message: Odometry) -> TransformStamped:
    """Return the pose of the odometry as a transform of the same time."""
    position, orientation = message.pose.pose.position, message.pose.pose.orientation
    rotation = Quaternion(orientation.x, orientation.y, orientation.z, orientation.w)
    moved = transform(message.header.frame_id, message.child_frame_id, (position.x, position.y, position.z), rotation)
    moved.header.stamp = message.header.stamp
    return moved


class TransformTemplate:
    """A transform of which only stamp and pose change, serialized once. For one thread."""

    def __init__(self, parent: str, child: str) -> None:
        message, gaps = transform(parent, child), (STAMP, "transform")
        # Its doubles are aligned differently at the beginning of a TFMessage, which is not at a multiple of 8 bytes.
        self.first = MessageTemplate(TFMessage(transforms=[message]), *(f"transforms[0].{gap}" for gap in gaps))
        self.later = MessageTemplate(message, *gaps)


def serialized_transforms(moved: Iterable[tuple[TransformTemplate, tuple[int, int], Iterable[float]]]) -> bytes:
    """Return a TFMessage of transforms, each with its stamp (s, ns) and pose (m, and x, y, z, w)."""
    parts: list[bytes] = []
    for template, stamp, pose in moved:
        if parts:
            parts.append(template.later.filled(stamp, pose)[len(ENCAPSULATION) :])
        else:
            parts.append(template.first.filled(stamp, pose)[len(ENCAPSULATION) + _COUNT.size :])
    return b"".join((ENCAPSULATION, _COUNT.pack(len(parts)), *parts))
