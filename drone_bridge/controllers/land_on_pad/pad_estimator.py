# SPDX-License-Identifier: Apache-2.0
"""Kalman filters for the position and velocity of pad and drone.

Frame: levelled, z up, x where the drone looks when its yaw is 0. It has no fixed origin: without GPS, only the
difference between pad and drone is known, and how it changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from drone_bridge.motion.matrices import Vector

PAD, PAD_VELOCITY, DRONE_VELOCITY = range(3)  # rows of the horizontal state
HEIGHT, CLIMB, PAD_HEIGHT = range(3)  # entries of the vertical state

START_DRONE_SPEED_DEVIATION: Final = 1.0  # m/s
START_PAD_SPEED_DEVIATION: Final = 0.5  # m/s
START_HEIGHT_DEVIATION: Final = 10.0  # m
START_CLIMB_DEVIATION: Final = 1.0  # m/s
START_PAD_HEIGHT_DEVIATION: Final = 0.3  # m above the ground that the altimeter measures from
UNKNOWN_DEVIATION: Final = 100.0  # m
PAD_ACCELERATION_NOISE: Final = 0.6  # m/s after 1 s; a rover that turns round changes its velocity at once
DRONE_ACCELERATION_NOISE: Final = 0.6  # m/s after 1 s: gusts, drag, and tilts that are not quite what was measured
CLIMB_NOISE: Final = 3.0  # m/s after 1 s, as thrust is not looked at
PAD_HEIGHT_NOISE: Final = 0.02  # m after 1 s
VELOCITY_DEVIATION: Final = 0.08  # m/s, by optical flow
HEIGHT_DEVIATION: Final = 0.05  # m
CLIMB_DEVIATION: Final = 0.1  # m/s
UNRELATED_DEVIATIONS: Final = 5.0  # a sighting this far from the expected position is not accepted at once ...
BELIEVED_AFTER: Final = 3  # ... but after this many in a row


class PadEstimator:
    """Fuses the drone's velocity and altitude with sightings of the pad.

    Horizontally, both axes have the same noise and so one covariance: the state is 3 x 2, rows as named above. A pad
    that has not been seen yet, or was forgotten, has no position; the drone's own motion is known all the same.
    """

    def __init__(self) -> None:
        self._state: Vector = np.zeros((3, 2))
        start = [UNKNOWN_DEVIATION, START_PAD_SPEED_DEVIATION, START_DRONE_SPEED_DEVIATION]
        self._covariance: Vector = np.diag(start) ** 2
        self._vertical: Vector = np.zeros(3)
        start = [START_HEIGHT_DEVIATION, START_CLIMB_DEVIATION, START_PAD_HEIGHT_DEVIATION]
        self._vertical_covariance: Vector = np.diag(start) ** 2
        self._doubted = 0  # rejected sightings in a row
        self.is_tracking = False

    @property
    def pad(self) -> Vector:
        """The pad relative to the drone, 2, m. Meaningless before the first sighting."""
        return np.array(self._state[PAD])

    @property
    def pad_velocity(self) -> Vector:
        """Of the pad over ground, 2, m/s."""
        return np.array(self._state[PAD_VELOCITY])

    @property
    def velocity(self) -> Vector:
        """Of the drone over ground, 2, m/s."""
        return np.array(self._state[DRONE_VELOCITY])

    @property
    def altitude(self) -> float:
        """Of the drone above the ground, m."""
        return float(self._vertical[HEIGHT])

    @property
    def climb_speed(self) -> float:
        """Of the drone, upwards, m/s."""
        return float(self._vertical[CLIMB])

    @property
    def height_above_pad(self) -> float:
        """Of the drone, m; an unseen pad is assumed to lie on the ground."""
        return float(self._vertical[HEIGHT] - self._vertical[PAD_HEIGHT])

    @property
    def pad_deviation(self) -> float:
        """Standard deviation of the pad's position along each horizontal axis, m."""
        return math.sqrt(float(self._covariance[PAD, PAD]))

    def predict(self, acceleration: Vector, seconds: float) -> None:
        """Advance in time, with the acceleration due to the drone's tilt (2, m/s^2)."""
        transition = np.array([[1.0, seconds, -seconds], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        self._state = transition @ self._state
        self._state[PAD] -= acceleration * seconds**2 / 2
        self._state[DRONE_VELOCITY] += acceleration * seconds
        noise = np.array([0.0, PAD_ACCELERATION_NOISE, DRONE_ACCELERATION_NOISE]) ** 2 * seconds
        self._covariance = transition @ self._covariance @ transition.T + np.diag(noise)
        climbing = np.array([[1.0, seconds, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        self._vertical = climbing @ self._vertical
        noise = np.array([0.0, CLIMB_NOISE, PAD_HEIGHT_NOISE]) ** 2 * seconds
        self._vertical_covariance = climbing @ self._vertical_covariance @ climbing.T + np.diag(noise)

    def measured_velocity(self, velocity: Vector) -> None:
        """Correct by the drone's velocity, 3, m/s."""
        row = np.zeros(3)
        row[DRONE_VELOCITY] = 1.0
        self._correct(row, velocity[:2], VELOCITY_DEVIATION)
        row = np.zeros(3)
        row[CLIMB] = 1.0
        self._correct_vertical(row, float(velocity[2]), CLIMB_DEVIATION)

    def measured_altitude(self, altitude: float) -> None:
        """Correct by the drone's height above the ground, m."""
        row = np.zeros(3)
        row[HEIGHT] = 1.0
        self._correct_vertical(row, altitude, HEIGHT_DEVIATION)

    def saw_pad(self, offset: Vector, age: float, deviation: float, vertical_deviation: float) -> bool:
        """Correct by a sighting of the pad; return whether it was accepted.

        Args:
            offset: from the drone to the pad, 3, m, at the time of the sighting.
            age: how long ago that was, s.
            deviation: standard deviation of the offset along each horizontal axis, m.
            vertical_deviation: and along the vertical one.
        """
        row = np.zeros(3)
        row[PAD], row[PAD_VELOCITY], row[DRONE_VELOCITY] = 1.0, -age, age
        if self.is_tracking and self._is_unrelated(row, offset[:2], deviation):
            self._doubted += 1
            if self._doubted < BELIEVED_AFTER:
                return False
            self.forget()
        self._doubted = 0
        self.is_tracking = True
        self._correct(row, offset[:2], deviation)
        above = np.zeros(3)
        above[HEIGHT], above[CLIMB], above[PAD_HEIGHT] = 1.0, -age, -1.0
        self._correct_vertical(above, -float(offset[2]), max(vertical_deviation, HEIGHT_DEVIATION))
        return True

    def forget(self) -> None:
        """Forget the pad, not the drone's own motion."""
        self.is_tracking = False
        self._doubted = 0
        self._state[:DRONE_VELOCITY] = 0.0
        own = self._covariance[DRONE_VELOCITY, DRONE_VELOCITY]
        self._covariance = np.diag([UNKNOWN_DEVIATION**2, START_PAD_SPEED_DEVIATION**2, own])

    def _is_unrelated(self, row: Vector, offset: Vector, deviation: float) -> bool:
        expected = math.sqrt(float(row @ self._covariance @ row) + deviation**2)
        return bool(np.linalg.norm(offset - row @ self._state) > UNRELATED_DEVIATIONS * expected)

    def _correct(self, row: Vector, measured: Sequence[float] | Vector, deviation: float) -> None:
        gain, self._covariance = _gain(self._covariance, row, deviation)
        self._state = self._state + np.outer(gain, np.asarray(measured) - row @ self._state)

    def _correct_vertical(self, row: Vector, measured: float, deviation: float) -> None:
        gain, self._vertical_covariance = _gain(self._vertical_covariance, row, deviation)
        self._vertical = self._vertical + gain * (measured - float(row @ self._vertical))


def _gain(covariance: Vector, row: Vector, deviation: float) -> tuple[Vector, Vector]:
    """Return how a measurement of row @ state changes the state, and the covariance afterwards (Joseph's form)."""
    gain = covariance @ row / (float(row @ covariance @ row) + deviation**2)
    kept = np.eye(len(row)) - np.outer(gain, row)
    return gain, kept @ covariance @ kept.T + deviation**2 * np.outer(gain, gain)
