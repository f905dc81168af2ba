# SPDX-License-Identifier: Apache-2.0
"""The testbed's drone as an environment: fly to the red sphere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from drone_bridge.programs.environment import EmulatedEnv, Image, box, pixels
from drone_bridge.testbed.device import Airframe, Motion
from drone_bridge.testbed.emulator.world import COLUMNS, Flight, StereoCamera, World

MAX_RATE = 4.0  # rad/s
MAX_THRUST = 25.0  # N
FARTHEST_M = 40.0  # from the target: the episode is over there
REACHED, LOST = 10.0, -10.0  # rewards
#: Standard deviations of what is measured, at a noise of 1.
_DEVIATIONS = np.array([0.003, 0.003, 0.03, 0.03, 0.03, 0.02, 0.02, 0.02])  # rad, m/s, m


class TestbedEnv(EmulatedEnv):
    """Fly to the target, a red sphere 4 to 12 m away, within 0.75 m of its centre.

    Action, as on the topic cmd_rates: roll, pitch and yaw rate (rad/s; + banks right, lowers the nose, turns left), and
    thrust (N). Observation, in level axes with the drone's heading, x forward, y left, z up: roll, pitch (rad),
    velocity (m/s), and the way to the target (m). Reward: metres nearer to it, 10 when it is reached, -10 when it is
    lost. `info`: distance (m) and, once, reached_at (s).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012
    __test__ = False  # pytest takes the name for a test's

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        images: bool = False,
        width: int = 160,
        height: int = 120,
        obstacles: int = 0,
        gusts: float = 0.3,
        noise: float = 1.0,
        delay: int = 2,
    ) -> None:
        """`gusts` in m/s; `noise` is a multiple of what is usual, `delay` the most steps that commands are late."""
        self._camera = StereoCamera(width, height, 120.0, 104.8, 0.25)
        super().__init__(
            box(*[(-math.pi, math.pi)] * 2, *[(-50.0, 50.0)] * 3, *[(-2 * FARTHEST_M, 2 * FARTHEST_M)] * 3),
            box(*[(-MAX_RATE, MAX_RATE)] * 3, (0.0, MAX_THRUST)),
            dict.fromkeys(("left", "right"), pixels(width, height)),
            render_mode=render_mode,
            images=images,
            delay=delay,
        )
        self._airframe = Airframe(mass=1.0, gravity=9.81, drag=0.2)
        self._obstacles, self._gusts = obstacles, gusts
        self._deviations = noise * _DEVIATIONS

    def _begin(self, seed: int) -> None:
        self._world = World.random(seed, self._obstacles)
        self._target = np.array(self._world.targets[0].centre)
        self.flight = Flight(self._world, self._airframe, 1 / 60, self._gusts, seed)
        self._motion = Motion()
        self._distance = self.flight.distance

    def _neutral(self) -> list[float]:
        return [0.0, 0.0, 0.0, self._airframe.mass * self._airframe.gravity]

    def _fly(self, command: list[float]) -> tuple[float, bool]:
        roll_rate, pitch_rate, yaw_rate, thrust = command
        self._motion = Motion(math.degrees(pitch_rate), math.degrees(roll_rate), -math.degrees(yaw_rate), thrust)
        self.flight.advance(self._motion)
        before, self._distance = self._distance, self.flight.distance
        if self.flight.reached_at is not None:
            return before - self._distance + REACHED, True
        if self._distance > FARTHEST_M:
            return before - self._distance + LOST, True
        return before - self._distance, False

    def _state(self) -> list[float]:
        state = self.flight.state
        heading, pitch, roll = map(math.radians, state.angles)
        sine, cosine = math.sin(heading), math.cos(heading)
        noise = (self._deviations * self.np_random.standard_normal(8)).tolist()
        exact = [roll, pitch]
        for x, y, z in (state.velocity.tolist(), (self._target - state.position).tolist()):
            exact += [sine * x - cosine * z, -cosine * x - sine * z, y]
        return [value + error for value, error in zip(exact, noise, strict=True)]

    def _seen(self) -> dict[str, Image]:
        left, right = self._camera.render(self.flight.state, self._world.spheres)
        return {"left": left.copy(), "right": right.copy()}

    def _info(self) -> dict[str, Any]:
        reached_at = self.flight.reached_at
        return {"distance": self._distance, **({} if reached_at is None else {"reached_at": reached_at})}

    def row(self) -> dict[str, float | str]:
        return dict(zip(COLUMNS, self.flight.row(self._motion), strict=True))

    @property
    def said(self) -> str:
        return self.flight.arrival
