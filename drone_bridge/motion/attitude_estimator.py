# SPDX-License-Identifier: Apache-2.0
"""AttitudeEstimator: attitude from the measured angles, and from the commanded rates for unmeasured ones."""

from __future__ import annotations

import math

import numpy as np

from drone_bridge.motion.matrices import Matrix, Triple
from drone_bridge.motion.quaternions import (
    IDENTITY,
    MeasuredAttitude,
    Quaternion,
    euler_from_quaternion,
    inverse,
    multiplied,
    quaternion_from_euler,
    quaternion_from_vector,
    rotated,
    rotated_back,
)

ANGLE_DEVIATION = 1e-4  # rad; testbeds round to a hundredth of a degree, or to the wire's floats
FIRST_ROLL_DEVIATION = 0.05  # rad; if roll is not measured, the drone is assumed to start level
RATE_DEVIATION = 0.01  # rad/s, of actual from commanded rates
MAX_DRIFT = 1.0  # rad/s; more can't be wind
DRIFT_TIME = 1.0  # s, averaging time of the uncommanded rotation
RATE_CHANGE_DEVIATION = 0.1  # share of a change of the commanded rates, which may act a frame sooner or later


class AttitudeEstimator:
    """Attitude with the measured angles, which otherwise follows the commanded rates.

    Measured angles override the prediction, since only they show the rotation by wind. With measured roll and pitch,
    the thrust direction and its uncommanded rotation (`drift`) are known; yaw is then relative to the start, which is
    harmless. With measured pitch and yaw, the nose direction is known. The roll about the nose is then estimated by a
    one-dimensional Kalman filter, since it determines the direction in which commanded rates turn the nose.
    """

    def __init__(self, measured: MeasuredAttitude) -> None:
        self.attitude = quaternion_from_euler(measured.roll or 0.0, measured.pitch or 0.0, measured.yaw or 0.0)
        #: Uncommanded rotation rate, rad/s about the axes of the levelled frame.
        self.drift: Triple = (0.0, 0.0, 0.0)
        self._step = 1.0  # s
        self._roll_variance = FIRST_ROLL_DEVIATION**2
        self._rates: Triple = (0.0, 0.0, 0.0)
        self._turn_variance = 0.0  # of each component, rad^2

    @property
    def rotation(self) -> Matrix:
        """Rotation from the body to the levelled frame."""
        return np.column_stack([rotated(self.attitude, *axis) for axis in np.eye(3).tolist()])

    def attitude_after(self, rates: Triple, step: float) -> Quaternion:
        """Return the attitude after a rotation with body rates (rad/s about x, y, z) for `step` seconds."""
        drift = rotated_back(self.attitude, *self.drift)
        x, y, z = ((rate + also) * step for rate, also in zip(rates, drift, strict=True))
        return multiplied(self.attitude, quaternion_from_vector(x, y, z))

    def predict(self, rates: Triple, step: float) -> None:
        """Predict the attitude for body rates (rad/s about x, y, z) that act for `step` seconds."""
        self.attitude = self.attitude_after(rates, step)
        self._step = step
        deviation = RATE_DEVIATION + RATE_CHANGE_DEVIATION * math.dist(rates, self._rates)
        self._turn_variance = (deviation * step) ** 2
        self._roll_variance += self._turn_variance
        self._rates = rates

    def correct(self, measured: MeasuredAttitude) -> None:
        """Correct the attitude by measured angles."""
        roll, pitch, yaw = measured.roll, measured.pitch, measured.yaw
        if pitch is None or (roll is None and yaw is None):  # no protocol does this, but an Imu message may
            _, own_pitch, own_yaw = euler_from_quaternion(self.attitude)
            pitch = own_pitch if pitch is None else pitch
            yaw = own_yaw if roll is None and yaw is None else yaw
        if roll is not None and yaw is not None:
            measured_attitude = quaternion_from_euler(roll, pitch, yaw)
            self._note_drift(multiplied(inverse(self.attitude), measured_attitude))
            self.attitude = measured_attitude
        elif roll is not None:
            self._level(roll, pitch)
        else:
            assert yaw is not None
            self._point(pitch, yaw)

    def replace(self, measured: MeasuredAttitude) -> None:
        """Correct the attitude by measured angles at an unchanged time, without an update of `drift`."""
        drift = self.drift
        self.correct(measured)
        self.drift = drift

    def residuals(self, measured: MeasuredAttitude, attitude: Quaternion) -> list[float]:
        """Return the error of an attitude for each measured angle, rad."""
        values = (measured.roll, measured.pitch, measured.yaw)
        return [
            math.remainder(value - angle, math.tau)
            for value, angle in zip(values, euler_from_quaternion(attitude), strict=True)
            if value is not None
        ]

    def _level(self, roll: float, pitch: float) -> None:
        """Rotate the attitude by the smallest angle to the measured roll and pitch."""
        level = math.cos(pitch)
        x, y, z = -math.sin(pitch), level * math.sin(roll), level * math.cos(roll)
        ux, uy, uz = rotated_back(self.attitude, 0.0, 0.0, 1.0)
        self._note_drift(
            self._turn_by(y * uz - z * uy, z * ux - x * uz, x * uy - y * ux, 1.0 + x * ux + y * uy + z * uz)
        )

    def _point(self, pitch: float, yaw: float) -> None:
        """Rotate the nose by the smallest angle to pitch and yaw, and correct the roll estimate by that rotation."""
        level = math.cos(pitch)
        ahead, left, up = rotated_back(
            self.attitude, level * math.cos(yaw), level * math.sin(yaw), -math.sin(pitch)
        )  # measured nose direction, in the predicted body axes
        self._turn_by(0.0, -up, left, 1.0 + ahead)
        # Sensitivity: a small roll error turns the nose by that angle times these factors, to the left and up.
        to_left, to_up = self._rates[1] * self._step, self._rates[2] * self._step
        seen = to_left * to_left + to_up * to_up
        gain = self._roll_variance / (self._roll_variance * seen + self._turn_variance + 2 * ANGLE_DEVIATION**2)
        self._roll_variance -= gain * seen * self._roll_variance
        roll = gain * (to_left * left + to_up * up)
        self.attitude = multiplied(self.attitude, quaternion_from_vector(roll, 0.0, 0.0))

    def _turn_by(self, x: float, y: float, z: float, w: float) -> Quaternion:
        """Rotate in body axes by a quaternion of any length, and return it normalized. Skips an ambiguous half turn."""
        length = math.sqrt(x * x + y * y + z * z + w * w)
        if length < 1e-6:
            return IDENTITY
        turn = Quaternion(x / length, y / length, z / length, w / length)
        self.attitude = multiplied(self.attitude, turn)
        return turn

    def _note_drift(self, missed: Quaternion) -> None:
        """Update `drift` by a small measured rotation, in body axes, beyond the predicted one."""
        share = math.copysign(2.0, missed.w) * -math.expm1(-self._step / DRIFT_TIME) / self._step
        missed_rates = rotated(self.attitude, missed.x, missed.y, missed.z)
        x, y, z = (drift + share * rate for drift, rate in zip(self.drift, missed_rates, strict=True))
        self.drift = (_within(x), _within(y), _within(z))


def _within(drift: float) -> float:
    return max(-MAX_DRIFT, min(MAX_DRIFT, drift))
