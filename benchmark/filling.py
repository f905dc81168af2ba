# SPDX-License-Identifier: Apache-2.0
"""Filling of messages in the bare scripts: coordinates, and rotations of three angles."""

import math

from geometry_msgs.msg import Point, Quaternion, Vector3

Rotation = tuple[float, float, float, float]  # x, y, z, w


def fill(vector: Point | Vector3, x: float, y: float, z: float) -> None:
    """Set three coordinates."""
    vector.x, vector.y, vector.z = x, y, z


def rotation_of(roll: float, pitch: float, yaw: float) -> Rotation:
    """Return the quaternion of three Euler angles, rad."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def fill_rotation(quaternion: Quaternion, rotation: Rotation) -> None:
    """Set a quaternion."""
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = rotation
