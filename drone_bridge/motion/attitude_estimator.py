# SPDX-License-Identifier: Apache-2.0
"""Attitude from those angles that are measured, and from the commanded rates for the one that is not."""

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
FIRST_ROLL_DEVIATION = 0.05  # rad; where roll is not measured, the drone is taken to start level
RATE_DEVIATION = 0.01  # rad/s, of what was done from what was commanded
MAX_DRIFT = 1.0  # rad/s; more can't be wind
DRIFT_TIME = 1.0  # s over which is averaged how the drone turns without a command
RATE_CHANGE_DEVIATION = 0.1  # share of a change of the commanded rates: it may have come a frame sooner or later


class AttitudeEstimator:
    """The attitude that has the measured angles, and otherwise follows the commanded rates.

    Measured angles are the truth: wind turns a drone, too, and nothing but they shows it. With roll and pitch the
    direction of the thrust is known, and what turns it without a command (`drift`); yaw is relative to the start,
    which is harmless. With pitch and yaw the nose is known, and the roll about it is estimated (a Kalman filter of one
    dimension), as the roll decides which way commanded rates turn the nose.
    """

    def __init__(self, measured: MeasuredAttitude) -> None:
        self.attitude = quaternion_from_euler(measured.roll or 0.0, measured.pitch or 0.0, measured.yaw or 0.0)
        #: How fast the drone turns without a command, rad/s about the axes of the levelled frame.
        self.drift: Triple = (0.0, 0.0, 0.0)
        self._step = 1.0  # s
        self._roll_variance = FIRST_ROLL_DEVIATION**2
        self._rates: Triple = (0.0, 0.0, 0.0)
        self._turn_variance = 0.0  # of each component, rad^2

    @property
    def rotation(self) -> Matrix:
        """The rotation from the body to the levelled frame."""
        return np.column_stack([rotated(self.attitude, *axis) for axis in np.eye(3).tolist()])

    def turned(self, rates: Triple, step: float) -> Quaternion:
        """Return the attitude after turning with these body rates (rad/s about x, y, z) for step seconds."""
        drift = rotated_back(self.attitude, *self.drift)
        x, y, z = ((rate + also) * step for rate, also in zip(rates, drift, strict=True))
        return multiplied(self.attitude, quaternion_from_vector(x, y, z))

    def predict(self, rates: Triple, step: float) -> None:
        """Turn with these body rates (rad/s about x, y, z) for step seconds."""
        self.attitude = self.turned(rates, step)
        self._step = step
        deviation = RATE_DEVIATION + RATE_CHANGE_DEVIATION * math.dist(rates, self._rates)
        self._turn_variance = (deviation * step) ** 2
        self._roll_variance += self._turn_variance
        self._rates = rates

    def correct(self, measured: MeasuredAttitude) -> None:
        """Take over measured angles."""
        roll, pitch, yaw = measured.roll, measured.pitch, measured.yaw
        if pitch is None or (roll is None and yaw is None):  # on no wire, but an Imu message may have it
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
        """Take over measured angles between which no time has passed, so that they say nothing of drift."""
        drift = self.drift
        self.correct(measured)
        self.drift = drift

    def residuals(self, measured: MeasuredAttitude, attitude: Quaternion) -> list[float]:
        """Return by how much an attitude misses each measured angle, rad."""
        values = (measured.roll, measured.pitch, measured.yaw)
        return [
            math.remainder(value - angle, math.tau)
            for value, angle in zip(values, euler_from_quaternion(attitude), strict=True)
            if value is not None
        ]

    def _level(self, roll: float, pitch: float) -> None:
        """Turn by the shortest way to where up is in the direction that roll and pitch say."""
        level = math.cos(pitch)
        x, y, z = -math.sin(pitch), level * math.sin(roll), level * math.cos(roll)
        ux, uy, uz = rotated_back(self.attitude, 0.0, 0.0, 1.0)
        self._note_drift(
            self._turn_by(y * uz - z * uy, z * ux - x * uz, x * uy - y * ux, 1.0 + x * ux + y * uy + z * uz)
        )

    def _point(self, pitch: float, yaw: float) -> None:
        """Turn the nose by the shortest way to pitch and yaw, and about the nose by what that says about the roll."""
        level = math.cos(pitch)
        ahead, left, up = rotated_back(
            self.attitude, level * math.cos(yaw), level * math.sin(yaw), -math.sin(pitch)
        )  # of where the nose was expected
        self._turn_by(0.0, -up, left, 1.0 + ahead)
        # A roll that is larger by a small angle turns the nose by that angle times these, to the left and up.
        to_left, to_up = self._rates[1] * self._step, self._rates[2] * self._step
        seen = to_left * to_left + to_up * to_up
        gain = self._roll_variance / (self._roll_variance * seen + self._turn_variance + 2 * ANGLE_DEVIATION**2)
        self._roll_variance -= gain * seen * self._roll_variance
        roll = gain * (to_left * left + to_up * up)
        self.attitude = multiplied(self.attitude, quaternion_from_vector(roll, 0.0, 0.0))

    def _turn_by(self, x: float, y: float, z: float, w: float) -> Quaternion:
        """Turn by a quaternion of any length, in the body, and return it. Half a turn has no shortest way: not made."""
        length = math.sqrt(x * x + y * y + z * z + w * w)
        if length < 1e-6:
            return IDENTITY
        turn = Quaternion(x / length, y / length, z / length, w / length)
        self.attitude = multiplied(self.attitude, turn)
        return turn

    def _note_drift(self, missed: Quaternion) -> None:
        """Note a small turn, in the body, that was measured beside the predicted one."""
        share = math.copysign(2.0, missed.w) * -math.expm1(-self._step / DRIFT_TIME) / self._step
        missed_rates = rotated(self.attitude, missed.x, missed.y, missed.z)
        x, y, z = (drift + share * rate for drift, rate in zip(self.drift, missed_rates, strict=True))
        self.drift = (_within(x), _within(y), _within(z))


def _within(drift: float) -> float:
    return max(-MAX_DRIFT, min(MAX_DRIFT, drift))
