# SPDX-License-Identifier: Apache-2.0
"""A rover that drives a pattern, or follows telemetry of a rover.

The world's x and y are metres, its origin the middle of every pattern. The rover always faces along x: the wire carries
a rover's position and velocity, but no heading.
"""

from __future__ import annotations

import math
import random
from enum import Enum

import numpy as np
import numpy.typing as npt

ROVER_Z = 0.15  # m: the height of the rover's middle, which is what it tells as its position
RANDOM_PERIOD_S = 3.0  # after which a new target is drawn
ACCELERATION = 0.5  # m/s^2, when it starts, brakes and turns
ARRIVED_M = 0.03
#: A rover that is led stops without rover telemetry for this long.
SILENCE_S = 1.0

Vector2 = npt.NDArray[np.float64]  # 2 elements


class Pattern(str, Enum):
    """The pattern that the rover drives."""

    STATIONARY = "stationary"  # stands in the origin
    LINEAR = "linear"  # to and fro along x, `amplitude` to either side
    CIRCULAR = "circular"  # to the left around the origin, `amplitude` away
    SQUARE = "square"  # to the corners (+-amplitude, +-amplitude), to the left
    RANDOM = "random"  # to a new place within +-amplitude every 3 s
    FOLLOW = "follow"  # where rover telemetry says


class Rover:
    """The state of the rover."""

    def __init__(self, pattern: Pattern, speed: float = 0.5, amplitude: float = 2.0, seed: int = 0) -> None:
        """`speed` is in m/s, `amplitude` in m."""
        self.pattern = pattern
        self.time = 0.0  # s
        self.position: Vector2 = np.zeros(2)  # m
        self.velocity: Vector2 = np.zeros(2)  # m/s
        self._speed = speed
        self._amplitude = amplitude
        self._random = random.Random(f"rover {seed}")
        self._targets = self._first_targets()
        self._next_draw_s = 0.0
        self._told_at_s = -math.inf
        if pattern is Pattern.CIRCULAR:
            self._circle()

    def lead(self, position: tuple[float, float], velocity: tuple[float, float]) -> None:
        """Move to this position (m) and continue at this velocity (m/s), for at most SILENCE_S without another call."""
        self.position = np.array(position, dtype=float)
        self.velocity = np.array(velocity, dtype=float)
        self._told_at_s = self.time

    def advance(self, step: float) -> None:
        """Drive for `step` s."""
        self.time += step
        if self.pattern is Pattern.CIRCULAR:
            self._circle()
            return
        if self.pattern is Pattern.FOLLOW:
            if self.time - self._told_at_s > SILENCE_S:
                self.velocity = np.zeros(2)
        else:
            self._steer(step)
        self.position = self.position + self.velocity * step

    def _first_targets(self) -> list[Vector2]:
        a = self._amplitude
        if self.pattern is Pattern.LINEAR:
            return [np.array([a, 0.0]), np.array([-a, 0.0])]
        if self.pattern is Pattern.SQUARE:
            return [np.array(corner) for corner in ((a, -a), (a, a), (-a, a), (-a, -a))]
        return [np.zeros(2)]

    def _circle(self) -> None:
        if not self._amplitude:
            return
        turn = self._speed / self._amplitude
        sine, cosine = math.sin(turn * self.time), math.cos(turn * self.time)
        self.position = self._amplitude * np.array([cosine, sine])
        self.velocity = self._speed * np.array([-sine, cosine])

    def _steer(self, step: float) -> None:
        """Accelerate towards the target."""
        if self.pattern is Pattern.RANDOM and self.time >= self._next_draw_s:
            self._next_draw_s += RANDOM_PERIOD_S
            a = self._amplitude
            self._targets = [np.array([self._random.uniform(-a, a), self._random.uniform(-a, a)])]
        away = self._targets[0] - self.position
        distance = float(np.linalg.norm(away))
        if distance < ARRIVED_M and len(self._targets) > 1:
            self._targets.append(self._targets.pop(0))
        # Not faster than it can brake before the target, and gently at the end.
        speed = min(self._speed, math.sqrt(ACCELERATION * distance), 2.0 * distance)
        wanted = away / distance * speed if distance else np.zeros(2)
        change = wanted - self.velocity
        largest = ACCELERATION * step
        size = float(np.linalg.norm(change))
        self.velocity = self.velocity + (change if size <= largest else change * (largest / size))
