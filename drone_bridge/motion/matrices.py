# SPDX-License-Identifier: Apache-2.0
"""Vectors, and rotation matrices from body axes to levelled axes, by default those of REP 103."""

import math

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]  # 2 or 3
Matrix = npt.NDArray[np.float64]  # 3 x 3
Triple = tuple[float, float, float]

#: Errors of computations with invalid numbers. In Humble's NumPy, LinAlgError is not a ValueError yet.
NOT_COMPUTABLE = (ValueError, ArithmeticError, np.linalg.LinAlgError)


def rotation_from_vector(vector: Vector) -> Matrix:
    """Return the rotation of a rotation vector, whose length is the angle, rad."""
    x, y, z = vector.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    # Rodrigues' formula, written out: NumPy is ten times slower for matrices of this size.
    sinc = math.sin(angle) / angle if angle > 1e-9 else 1.0
    half_sinc = math.sin(angle / 2) / (angle / 2) if angle > 1e-9 else 1.0
    versine = half_sinc**2 / 2
    return np.array(
        [
            [1 - versine * (y * y + z * z), versine * x * y - sinc * z, versine * x * z + sinc * y],
            [versine * x * y + sinc * z, 1 - versine * (x * x + z * z), versine * y * z - sinc * x],
            [versine * x * z - sinc * y, versine * y * z + sinc * x, 1 - versine * (x * x + y * y)],
        ]
    )


def rotation_from_angles(roll: float, pitch: float, yaw: float) -> Matrix:
    """Return the rotation from the body to the levelled frame for REP 103 angles in rad."""
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(angle), math.cos(angle)) for angle in (roll, pitch, yaw))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def angles_from_rotation(rotation: Matrix) -> tuple[float, float, float]:
    """Return roll, pitch, yaw in rad."""
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    pitch = math.atan2(-rotation[2, 0], math.hypot(rotation[2, 1], rotation[2, 2]))
    return roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])


def limited(vector: Vector, longest: float) -> Vector:
    """Scale a vector down to a maximum length."""
    shortened: Vector = vector * min(1.0, longest / max(float(np.linalg.norm(vector)), 1e-9))
    return shortened
