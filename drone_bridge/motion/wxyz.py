# SPDX-License-Identifier: Apache-2.0
"""Rotations as unit quaternions in the simulator's order w, x, y, z.

A frame's quaternion rotates vectors from that frame to its parent frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Vector = tuple[float, float, float]
WxyzQuaternion = tuple[float, float, float, float]

IDENTITY: WxyzQuaternion = (1.0, 0.0, 0.0, 0.0)


def conjugate(q: Iterable[Any]) -> tuple[Any, Any, Any, Any]:
    """Return the inverse rotation."""
    w, x, y, z = q
    return w, -x, -y, -z


def multiply(p: Iterable[Any], q: Iterable[Any]) -> tuple[Any, Any, Any, Any]:
    """Return the product p q: the rotation by q, then by p in the parent frame."""
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return (
        pw * qw - px * qx - py * qy - pz * qz,
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw,
    )


def rotate(q: Iterable[Any], v: Iterable[Any]) -> tuple[Any, Any, Any]:
    """Rotate a vector from the quaternion's frame to its parent frame."""
    w, x, y, z = q
    vx, vy, vz = v
    tx, ty, tz = 2 * (y * vz - z * vy), 2 * (z * vx - x * vz), 2 * (x * vy - y * vx)
    return vx + w * tx + y * tz - z * ty, vy + w * ty + z * tx - x * tz, vz + w * tz + x * ty - y * tx


def unit(q: Iterable[float]) -> WxyzQuaternion:
    """Normalize a quaternion. Raises ValueError if its length is zero or not finite."""
    w, x, y, z = q
    largest = max(abs(w), abs(x), abs(y), abs(z))
    if not 0 < largest < math.inf or math.isnan(w + x + y + z):
        raise ValueError(f"({w:g}, {x:g}, {y:g}, {z:g}) is not a rotation: its length must be finite and above 0.")
    w, x, y, z = w / largest, x / largest, y / largest, z / largest  # squares of tiny numbers would underflow
    length = math.hypot(w, x, y, z)
    return w / length, x / length, y / length, z / length


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product."""
    ax, ay, az = a
    bx, by, bz = b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


def dot(a: Vector, b: Vector) -> float:
    """Return the dot product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
