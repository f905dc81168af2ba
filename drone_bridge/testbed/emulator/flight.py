# SPDX-License-Identifier: Apache-2.0
"""One recorded flight through a world."""

from __future__ import annotations

import math

from drone_bridge.motion.wind import Wind
from drone_bridge.testbed.device.motion import Airframe, DroneState, Motion
from drone_bridge.testbed.emulator.world import Sphere, World

REACHED_WITHIN_M = 0.75  # of the target's centre
EDGE_OF_THE_WORLD_M = 1e6  # beyond it single-precision positions mean nothing

# Seconds, metres, degrees, newtons.
_STATE_COLUMNS = ("time", "x", "y", "z", "heading", "pitch", "roll", "vx", "vy", "vz")
#: Of each state, the rates and the thrust being those of the step that led to it.
COLUMNS = (*_STATE_COLUMNS, "pitch_rate", "roll_rate", "yaw_rate", "thrust", "distance")


class Flight:
    """The state of a drone in a world, the wind, and the smallest distance to the target."""

    def __init__(self, world: World, airframe: Airframe, step: float, gusts: float = 0.0, seed: int = 0) -> None:
        """`step` is in s; `gusts` (m/s, standard deviation) repeat with their seed."""
        self.state = DroneState.at_start()
        self.steps = 0
        self.smallest_distance = math.inf  # m
        self.reached_at: float | None = None  # s of simulated time
        self._target: Sphere = world.targets[0]
        self._airframe = airframe
        self._step = step
        self._wind = Wind(world.wind, gusts, seed=seed)
        self._wind_rotation = world.wind_rotation
        self._look_at_distance()

    @property
    def distance(self) -> float:
        """The current distance to the target's centre, m."""
        return math.dist(self.state.position, self._target.centre)

    @property
    def has_left_the_world(self) -> bool:
        """Whether the position is too far away to compute with."""
        return math.hypot(*self.state.position) > EDGE_OF_THE_WORLD_M

    def advance(self, motion: Motion) -> None:
        turned = self._wind_rotation.at(self.state.time + self._step / 2)
        self.state = self.state.advance(self._airframe, motion, self._wind.velocity, self._step, turned)
        self._wind.advance(self._step)
        self.steps += 1
        self._look_at_distance()

    def row(self, motion: Motion) -> list[float]:
        """Return the values of COLUMNS: the state and the motion that led to it."""
        values = [self.state.time, *self.state.position, *self.state.angles, *self.state.velocity]
        return [*values, motion.pitch_rate, motion.roll_rate, motion.yaw_rate, motion.thrust, self.distance]

    def _look_at_distance(self) -> None:
        self.smallest_distance = min(self.smallest_distance, self.distance)
        if self.reached_at is None and self.distance <= REACHED_WITHIN_M:
            self.reached_at = self.state.time
