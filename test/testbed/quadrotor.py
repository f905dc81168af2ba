# SPDX-License-Identifier: Apache-2.0
"""Quadrotor that follows velocities, independent of the package's models, controllers and axes."""

import math
import random

import numpy as np

STEP_S = 0.002


class Quadrotor:
    """Cascade of a velocity controller, lagging tilt and thrust, and drag. ENU. The seed determines its properties."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self._noise = random.Random(seed + 1000)
        self._velocity_gain = chance.uniform(2.0, 3.0)  # 1/s
        self._tilt_lag_s = chance.uniform(0.05, 0.15)
        self._yaw_lag_s = chance.uniform(0.1, 0.3)
        self._drag = chance.uniform(0.0, 0.05)  # 1/s
        self.position, self._velocity, self._acceleration = np.zeros(3), np.zeros(3), np.zeros(3)
        self.yaw, self._yaw_rate = chance.uniform(-math.pi, math.pi), 0.0
        self.command = (0.0, 0.0, 0.0, 0.0)  # forward, left, up, turn to the left

    def fly(self, duration_s):
        for _ in range(round(duration_s / STEP_S)):
            forward, left, up, turn = self.command
            cosine, sine = math.cos(self.yaw), math.sin(self.yaw)
            wanted = np.array([cosine * forward - sine * left, sine * forward + cosine * left, up])
            lag = self._velocity_gain * (wanted - self._velocity) - self._acceleration
            self._acceleration = self._acceleration + lag * STEP_S / self._tilt_lag_s
            self._velocity = self._velocity + (self._acceleration - self._drag * self._velocity) * STEP_S
            self.position = self.position + self._velocity * STEP_S
            self._yaw_rate += (turn - self._yaw_rate) * STEP_S / self._yaw_lag_s
            self.yaw += self._yaw_rate * STEP_S

    def measured(self):
        """Return position, m, and yaw, rad, with noise."""
        return [value + self._noise.gauss(0, 0.01) for value in self.position], self.yaw + self._noise.gauss(0, 0.005)
