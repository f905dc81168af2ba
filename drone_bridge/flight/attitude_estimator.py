# SPDX-License-Identifier: Apache-2.0
"""Attitude from the commanded rates, corrected by those angles that are measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.geometry.matrices import (
    Matrix,
    Vector,
    angles_from_rotation,
    rotation_from_angles,
    rotation_from_vector,
)

MEASUREMENT_DEVIATION = 1e-3  # rad; the wire's floats are far better, but a frame may be a little out of step
FIRST_ROLL_DEVIATION = 0.05  # rad; where roll is not measured, the drone is taken to start level
RATE_DEVIATION = 0.01  # rad/s, of what was done from what was commanded
RATE_CHANGE_DEVIATION = 0.1  # share of a change of the commanded rates: it may have come a frame sooner or later


@dataclass(frozen=True, slots=True)
class MeasuredAttitude:
    """REP 103 angles in rad, about z, then y, then x; None is not measured."""

    roll: float | None = None  # positive banks right
    pitch: float | None = None  # positive lowers the nose
    yaw: float | None = None  # positive turns left


class AttitudeEstimator:
    """An extended Kalman filter over the rotation, with the error as a small rotation in the body frame.

    Commanded rates act at once and exactly, so integrating them is as good as a gyroscope; measured angles correct its
    drift. An angle that is not measured is observable through the others whenever the drone turns: yawing while banked,
    for example, changes the pitch. Without a measured yaw, yaw is relative to the start, which is harmless.
    """

    def __init__(self, measured: MeasuredAttitude) -> None:
        self.rotation = rotation_from_angles(measured.roll or 0.0, measured.pitch or 0.0, measured.yaw or 0.0)
        roll_deviation = MEASUREMENT_DEVIATION if measured.roll is not None else FIRST_ROLL_DEVIATION
        self._covariance = np.diag([roll_deviation, MEASUREMENT_DEVIATION, MEASUREMENT_DEVIATION]) ** 2
        self._rates: Vector = np.zeros(3)

    def predict(self, rates: Vector, step: float) -> None:
        """Turn with these body rates (rad/s about x, y, z) for step seconds."""
        turn = rotation_from_vector(rates * step)
        self.rotation = self.rotation @ turn
        deviation = RATE_DEVIATION + RATE_CHANGE_DEVIATION * float(np.linalg.norm(rates - self._rates))
        self._covariance = turn.T @ self._covariance @ turn + (deviation * step) ** 2 * np.eye(3)
        self._rates = rates

    def residuals(self, measured: MeasuredAttitude, rotation: Matrix | None = None) -> list[tuple[int, float]]:
        """Return for each measured angle its index (roll, pitch, yaw) and how far the estimate is below it, rad."""
        angles = angles_from_rotation(self.rotation if rotation is None else rotation)
        values = (measured.roll, measured.pitch, measured.yaw)
        return [
            (index, math.remainder(value - angle, math.tau))
            for index, (value, angle) in enumerate(zip(values, angles, strict=True))
            if value is not None
        ]

    def correct(self, measured: MeasuredAttitude) -> None:
        """Correct the estimate by measured angles."""
        found = self.residuals(measured)
        if not found:
            return
        jacobian = _angles_per_turn(self.rotation)[[index for index, _ in found]]
        spread = jacobian @ self._covariance @ jacobian.T + MEASUREMENT_DEVIATION**2 * np.eye(len(found))
        gain = np.linalg.solve(spread, jacobian @ self._covariance).T
        self.rotation = self.rotation @ rotation_from_vector(gain @ np.array([residual for _, residual in found]))
        keep = np.eye(3) - gain @ jacobian
        self._covariance = keep @ self._covariance @ keep.T + MEASUREMENT_DEVIATION**2 * gain @ gain.T


def _angles_per_turn(rotation: Matrix) -> Matrix:
    """Return how roll, pitch and yaw (rows) change with small turns about the body's axes (columns)."""
    roll, pitch, _ = angles_from_rotation(rotation)
    sine, cosine = math.sin(roll), math.cos(roll)
    level = max(math.cos(pitch), 0.01)
    tangent = math.sin(pitch) / level
    return np.array([[1, sine * tangent, cosine * tangent], [0, cosine, -sine], [0, sine / level, cosine / level]])
