# SPDX-License-Identifier: Apache-2.0
"""Wind and gusts."""

from __future__ import annotations

import math

import numpy as np

from drone_bridge.geometry.matrices import Triple, Vector


class Wind:
    """Steady wind (m/s, world frame) with gusts of the given standard deviation per axis, m/s.

    Gusts are an Ornstein-Uhlenbeck process: they fade with the correlation time, s.
    """

    def __init__(self, steady: Triple, gusts: float = 0.0, correlation_time: float = 1.5, seed: int = 0) -> None:
        self._steady = np.array(steady, dtype=float)
        self._gusts = gusts
        self._correlation_time = correlation_time
        self._generator = np.random.default_rng(seed)
        self._gust = gusts * self._generator.standard_normal(3)

    @property
    def velocity(self) -> Vector:
        """Velocity of the air in the world frame now, m/s."""
        return self._steady + self._gust

    def advance(self, step: float) -> None:
        """Advance by `step` seconds. The statistics do not depend on the length of the steps."""
        if self._gusts:
            kept = math.exp(-step / self._correlation_time)
            fresh = self._gusts * math.sqrt(1 - kept * kept)
            self._gust = kept * self._gust + fresh * self._generator.standard_normal(3)
