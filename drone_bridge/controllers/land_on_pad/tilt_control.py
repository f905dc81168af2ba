# SPDX-License-Identifier: Apache-2.0
"""Converts desired velocities to tilt and thrust, for a drone that is commanded in shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from drone_bridge.motion.matrices import Matrix, Vector, limited

GRAVITY: Final = 9.81  # m/s^2
MAX_SIDEWAYS_TRIM: Final = 2.0  # m/s^2 of acceleration against wind and drag
MAX_UPWARD_TRIM: Final = 3.0  # m/s^2 against a hover that is not quite one, or tilted


@dataclass(frozen=True, slots=True)
class ShareCommand:
    """Shares of full tilt, thrust and turn rate, each from -1 to 1."""

    forward: float = 0.0  # of the full tilt, positive accelerates forward
    left: float = 0.0  # of the full tilt
    up: float = 0.0  # of the thrust beyond that of hovering
    turn: float = 0.0  # of the full turn rate, positive turns left

    @property
    def is_finite(self) -> bool:
        return all(map(math.isfinite, (self.forward, self.left, self.up, self.turn)))


@dataclass(frozen=True, slots=True)
class TiltGains:
    """The drone's response, and the gains."""

    full_tilt: float  # rad
    thrust_acceleration: float  # m/s^2 upwards at full thrust
    max_tilt: float  # rad, of what is asked for
    velocity_gain: float  # 1/s, sideways
    climb_gain: float  # 1/s, up and down
    trim_gain: float  # 1/s^2: how fast what pushes the drone is learnt


class TiltControl:
    """A PI controller of the velocity. The integrals, in level axes, compensate for wind."""

    def __init__(self, gains: TiltGains) -> None:
        self._gains = gains
        self._trim: Vector = np.zeros(3)  # m/s^2

    def command(self, error: Vector, rotation: Matrix, turn: float, seconds: float) -> ShareCommand:
        """Return the command for a velocity error.

        Args:
            error: wanted velocity minus the present one, 3, m/s.
            rotation: the drone's attitude.
            turn: share of the full turn rate.
            seconds: since the last command.
        """
        gains = self._gains
        self._learn(error, seconds)
        acceleration = self._trim.copy()
        acceleration[:2] += gains.velocity_gain * error[:2]
        acceleration[2] += gains.climb_gain * error[2]
        tilt = _tilt(acceleration[:2], gains.max_tilt)
        heading = _heading(rotation)
        aside = np.array([-heading[1], heading[0]])
        return ShareCommand(
            forward=_share(float(tilt @ heading) / gains.full_tilt),
            left=_share(float(tilt @ aside) / gains.full_tilt),
            up=_share(float(acceleration[2]) / gains.thrust_acceleration),
            turn=_share(turn),
        )

    def _learn(self, error: Vector, seconds: float) -> None:
        self._trim = self._trim + self._gains.trim_gain * seconds * np.clip(error, -1.0, 1.0)
        self._trim[:2] = limited(self._trim[:2], MAX_SIDEWAYS_TRIM)
        self._trim[2] = np.clip(self._trim[2], -MAX_UPWARD_TRIM, MAX_UPWARD_TRIM)


def acceleration_of_tilt(rotation: Matrix) -> Vector:
    """Return the horizontal acceleration, 2, m/s^2, of a drone whose thrust carries its weight."""
    upright = max(float(rotation[2, 2]), 0.1)
    acceleration: Vector = GRAVITY * rotation[:2, 2] / upright
    return acceleration


def _tilt(acceleration: Vector, most: float) -> Vector:
    """Return the tilt, rad, towards a horizontal acceleration, 2, m/s^2."""
    size = float(np.linalg.norm(acceleration))
    tilt: Vector = min(math.atan(size / GRAVITY), most) * acceleration / max(size, 1e-9)
    return tilt


def _heading(rotation: Matrix) -> Vector:
    forward: Vector = rotation[:2, 0]
    return forward / max(float(np.linalg.norm(forward)), 1e-9)


def _share(value: float) -> float:
    return max(-1.0, min(1.0, value))
