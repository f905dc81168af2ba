# SPDX-License-Identifier: Apache-2.0
"""Rotations as unit quaternions in ROS's order x, y, z, w, and as Euler angles."""

from math import asin, atan2, cos, hypot, sin, sqrt
from typing import Any, NamedTuple


class Quaternion(NamedTuple):
    """Rotation as a unit quaternion, in the order of geometry_msgs."""

    x: float
    y: float
    z: float
    w: float


class MeasuredAttitude(NamedTuple):
    """REP 103 angles in rad, about z, then y, then x. None means not measured."""

    roll: float | None = None  # positive banks right
    pitch: float | None = None  # positive lowers the nose
    yaw: float | None = None  # positive turns left


Point = tuple[float, float, float]
Placed = tuple[Point, Quaternion]  # position, m, and rotation in a reference frame
#: No rotation.
IDENTITY = Quaternion(0.0, 0.0, 0.0, 1.0)


def unit_quaternion(q: Any, tolerance: float = 0.1) -> Quaternion | None:
    """Normalize an object with x, y, z and w. Return None unless its length is 1 within the tolerance.

    Unfilled messages have length 0.
    """
    length = hypot(q.x, q.y, q.z, q.w)
    if not abs(length - 1.0) <= tolerance:
        return None
    return Quaternion(q.x / length, q.y / length, q.z / length, q.w / length)


def quaternion_from_euler(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Return the rotation by yaw about z, then pitch about the new y, then roll about the newest x, in radians."""
    cr, sr = cos(roll / 2), sin(roll / 2)
    cp, sp = cos(pitch / 2), sin(pitch / 2)
    cy, sy = cos(yaw / 2), sin(yaw / 2)
    return Quaternion(
        x=sr * cp * cy - cr * sp * sy,
        y=cr * sp * cy + sr * cp * sy,
        z=cr * cp * sy - sr * sp * cy,
        w=cr * cp * cy + sr * sp * sy,
    )


def euler_from_quaternion(q: Quaternion) -> tuple[float, float, float]:
    """Return roll, pitch and yaw, in radians, the inverse of `quaternion_from_euler`."""
    roll = atan2(2 * (q.w * q.x + q.y * q.z), 1 - 2 * (q.x * q.x + q.y * q.y))
    pitch = asin(max(-1.0, min(1.0, 2 * (q.w * q.y - q.z * q.x))))
    yaw = atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z))
    return roll, pitch, yaw


def quaternion_from_vector(x: float, y: float, z: float) -> Quaternion:
    """Return the rotation of a rotation vector, whose length is the angle, rad."""
    angle = sqrt(x * x + y * y + z * z)
    share = sin(angle / 2) / angle if angle > 1e-9 else 0.5
    return Quaternion(share * x, share * y, share * z, cos(angle / 2))


def multiplied(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the product a b: the rotation by b, then by a."""
    return Quaternion(
        x=a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        y=a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        z=a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
        w=a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
    )


def inverse(q: Quaternion) -> Quaternion:
    """Return the inverse rotation."""
    return Quaternion(-q.x, -q.y, -q.z, q.w)


def rotated(q: Quaternion, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Transform a vector from the rotated frame to the reference frame of the rotation."""
    qx, qy, qz, qw = q
    tx, ty, tz = 2 * (qy * z - qz * y), 2 * (qz * x - qx * z), 2 * (qx * y - qy * x)
    return (
        x + qw * tx + qy * tz - qz * ty,
        y + qw * ty + qz * tx - qx * tz,
        z + qw * tz + qx * ty - qy * tx,
    )


def rotated_back(q: Quaternion, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Transform a vector from the reference frame to the rotated frame: `rotated` by the inverse."""
    qx, qy, qz, qw = q
    tx, ty, tz = 2 * (qz * y - qy * z), 2 * (qx * z - qz * x), 2 * (qy * x - qx * y)
    return (
        x + qw * tx - qy * tz + qz * ty,
        y + qw * ty - qz * tx + qx * tz,
        z + qw * tz - qx * ty + qy * tx,
    )
