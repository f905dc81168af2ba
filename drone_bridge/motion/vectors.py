# SPDX-License-Identifier: Apache-2.0
"""Vectors of three floats, as tuples."""

import math

Triple = tuple[float, float, float]


def turned(vector: Triple, yaw: float) -> Triple:
    """Return a vector after a rotation about z by `yaw`, rad."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    x, y, z = vector
    return cos * x - sin * y, sin * x + cos * y, z


def added(a: Triple, b: Triple) -> Triple:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def subtracted(a: Triple, b: Triple) -> Triple:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def scaled(vector: Triple, factor: float) -> Triple:
    """Return a vector times a factor."""
    return vector[0] * factor, vector[1] * factor, vector[2] * factor


def dot(a: Triple, b: Triple) -> float:
    """Return the scalar product of a and b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
