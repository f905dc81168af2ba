# SPDX-License-Identifier: Apache-2.0
"""Rover that drives a pattern, or follows telemetry of a rover.

The world's x and y are in metres, with the origin in the middle of each pattern. The rover always faces along x: the
wire has a rover's position and velocity, but no heading.
"""

from __future__ import annotations

import math
import random
from enum import Enum

import numpy as np
import numpy.typing as npt

ROVER_Z = 0.15  # m: height of the rover's middle, which it reports as its position
RANDOM_PERIOD_S = 3.0  # interval between random targets
ACCELERATION = 0.5  # m/s^2, when it starts, brakes and turns
ARRIVED_M = 0.03
#: Timeout of rover telemetry, after which a led rover stops.
SILENCE_S = 1.0

Vector2 = npt.NDArray[np.float64]  # 2 elements


class RoverPattern(str, Enum):
    """Driving pattern of the rover."""

    STATIONARY = "stationary"  # stands at the origin
    LINEAR = "linear"  # back and forth along x, `amplitude` to either side
    CIRCULAR = "circular"  # counter-clockwise around the origin, `amplitude` away
    SQUARE = "square"  # counter-clockwise through the corners (+-amplitude, +-amplitude)
    RANDOM = "random"  # to a new position within +-amplitude every 3 s
    FOLLOW = "follow"  # follows rover telemetry


class Rover:
    """State of the rover."""

    def __init__(self, pattern: RoverPattern, speed: float = 0.5, amplitude: float = 2.0, seed: int = 0) -> None:
        """Start at rest; `speed` in m/s, `amplitude` in m."""
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
        if pattern is RoverPattern.CIRCULAR:
            self._circle()

    def lead(self, position: tuple[float, float], velocity: tuple[float, float]) -> None:
        """Move to this position (m) and continue at this velocity (m/s), for at most SILENCE_S without another call."""
        self.position = np.array(position, dtype=float)
        self.velocity = np.array(velocity, dtype=float)
        self._told_at_s = self.time

    def advance(self, step: float) -> None:
        """Drive for `step` s."""
        self.time += step
        if self.pattern is RoverPattern.STATIONARY:
            return
        if self.pattern is RoverPattern.CIRCULAR:
            self._circle()
            return
        if self.pattern is RoverPattern.FOLLOW:
            if self.time - self._told_at_s > SILENCE_S:
                self.velocity = np.zeros(2)
        else:
            self._steer(step)
        self.position = self.position + self.velocity * step

    def _first_targets(self) -> list[Vector2]:
        a = self._amplitude
        if self.pattern is RoverPattern.LINEAR:
            return [np.array([a, 0.0]), np.array([-a, 0.0])]
        if self.pattern is RoverPattern.SQUARE:
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
        if self.pattern is RoverPattern.RANDOM and self.time >= self._next_draw_s:
            self._next_draw_s += RANDOM_PERIOD_S
            a = self._amplitude
            self._targets = [np.array([self._random.uniform(-a, a), self._random.uniform(-a, a)])]
        away = self._targets[0] - self.position
        distance = float(np.linalg.norm(away))
        if distance < ARRIVED_M and len(self._targets) > 1:
            self._targets.append(self._targets.pop(0))
        # No faster than it can brake before the target, and gently at the end.
        speed = min(self._speed, math.sqrt(ACCELERATION * distance), 2.0 * distance)
        wanted = away / distance * speed if distance else np.zeros(2)
        change = wanted - self.velocity
        largest = ACCELERATION * step
        size = float(np.linalg.norm(change))
        self.velocity = self.velocity + (change if size <= largest else change * (largest / size))
