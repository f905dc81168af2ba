# SPDX-License-Identifier: Apache-2.0
"""Reference rotations for tests: matrices from axis and angle."""

import numpy as np


def about(axis, angle):
    """Return the matrix that rotates vectors about an axis by the right-hand rule, in radians."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def turned(quaternion, vector):
    """Return a vector rotated by a unit quaternion (any object with x, y, z, w), as q v q*."""
    axis, w = np.array([quaternion.x, quaternion.y, quaternion.z]), quaternion.w
    twice = 2 * np.cross(axis, vector)
    return np.asarray(vector) + w * twice + np.cross(axis, twice)


def matrix(quaternion):
    """Return the matrix of a unit quaternion."""
    return np.column_stack([turned(quaternion, unit) for unit in np.eye(3)])


def of_testbed_angles(heading, pitch, roll):
    """Return the matrix from testbed's body (x right, y up, z back) to its world: roll, then pitch, then heading."""
    right, up, back = np.eye(3)
    heading, pitch, roll = np.radians([heading, pitch, roll])
    return about(up, -heading) @ about(right, -pitch) @ about(back, -roll)
