# SPDX-License-Identifier: Apache-2.0
"""Wind: wind and gust model; WindRotation: rotation of a drone by wind."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.motion.matrices import Triple, Vector

#: Correlation time of gusts.
GUST_TIME_S = 1.5


class Wind:
    """Steady wind (m/s, world frame) with gusts of the given standard deviation per axis, m/s.

    Gusts are an Ornstein-Uhlenbeck process with the correlation time GUST_TIME_S. Along the third axis their deviation
    is `third_share` of the others': near the ground, vertical gusts are weaker.
    """

    def __init__(self, steady: Triple, gusts: float = 0.0, *, seed: int = 0, third_share: float = 1.0) -> None:
        self._steady = np.array(steady, dtype=float)
        self._shares = np.array([1.0, 1.0, third_share])
        self._gusts = gusts
        self._generator = np.random.default_rng(seed)
        self._gust = gusts * self._generator.standard_normal(3)

    @property
    def velocity(self) -> Vector:
        """Velocity of the air in the world frame now, m/s."""
        velocity: Vector = self._steady + self._shares * self._gust
        return velocity

    def advance(self, step: float) -> None:
        """Advance by `step` seconds. The statistics do not depend on the length of the steps."""
        if self._gusts:
            kept = math.exp(-step / GUST_TIME_S)
            fresh = self._gusts * math.sqrt(1 - kept * kept)
            self._gust = kept * self._gust + fresh * self._generator.standard_normal(3)


@dataclass(frozen=True, slots=True)
class WindRotation:
    """Rotation rate of a drone by wind, degrees/s about world axes, piecewise linear in time.

    Before the first and after the last point it is constant.
    """

    points: tuple[tuple[float, Triple], ...]  # time in s, rates about x, y, z

    def at(self, time: float) -> Vector:
        """Return the rates about x, y, z at a time, s."""
        times = [point for point, _ in self.points]
        return np.array(
            [np.interp(time, times, rates) for rates in zip(*(rates for _, rates in self.points), strict=True)]
        )


#: Wind without rotation.
NO_ROTATION = WindRotation(((0.0, (0.0, 0.0, 0.0)),))
