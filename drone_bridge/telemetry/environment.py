# SPDX-License-Identifier: Apache-2.0
"""The landing challenge's drone as an environment: land on the rover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drone_bridge.programs.environment import EmulatedEnv, Image, box, pixels
from drone_bridge.telemetry.codec import IMAGE_EVERY, MAX_THRUST, MAX_TILT, PERIOD_S, DroneCommand, DroneTelemetry
from drone_bridge.telemetry.emulator.rover import Pattern
from drone_bridge.telemetry.emulator.scene import PAD_HEIGHT, Scene
from drone_bridge.telemetry.emulator.world import COLUMNS, LANDING_GEAR, LandingFlight, Setup

FARTHEST_M = 15.0  # from the pad, horizontally or above it: the episode is over there
GOOD, BAD, LOST = 20.0, -5.0, -20.0  # rewards
#: How the rover may drive.
PATTERNS = tuple(pattern.value for pattern in Pattern if pattern is not Pattern.FOLLOW)


def observation_of(told: DroneTelemetry) -> list[float]:
    """Return what a drone tells of itself, as LandingEnv observes it."""
    imu, pad = told.imu, told.landing_pad
    return [
        *(imu.orientation.roll, imu.orientation.pitch),
        *imu.angular_velocity,
        *told.velocity,
        told.altimeter.altitude,
        *((1.0, pad.relative_x, pad.relative_y, pad.distance, pad.confidence) if pad else (0.0,) * 5),
        float(bool(told.landed)),
    ]


class LandingEnv(EmulatedEnv):
    """Land on the pad of a rover, within 0.35 m of its centre, with 1 m/s downwards and 0.7 m/s across at most.

    Action, shares from -1 to 1 with the wire's signs: thrust beyond hovering (of 5 m/s^2), pitch (of 0.5 rad, + flies
    forward), roll (of 0.5 rad, + flies to the right), yaw (of 0.5 rad/s, + turns left). Observation, along level axes
    with the drone's heading, x forward, y left, z up: roll, pitch (rad), angular velocity in body axes (3, rad/s),
    velocity (3, m/s), height (m), whether the pad is seen, how far it is forward, left and below (m), with which
    confidence (without sight all 0), and whether the drone stands. Reward: metres nearer to the pad, 20 for a good
    landing, -5 and less the farther off for a bad one, -20 when lost. `info`: distance (m) and, at the end, touchdown.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / PERIOD_S)}  # noqa: RUF012

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        images: bool = False,
        patterns: Sequence[str] = PATTERNS,
        rover_speed: float = 0.5,
        starts_on_ground: bool = False,
        wind: float = 1.0,
        gusts: float = 0.3,
        delay: int = 1,
    ) -> None:
        """`rover_speed`, `gusts` and the strongest steady `wind` in m/s; `delay`: most steps that commands are late."""
        camera = LandingFlight(Setup(images=False)).camera
        super().__init__(
            box(
                *[(-math.pi, math.pi)] * 2,
                *[(-20.0, 20.0)] * 3,
                *[(-50.0, 50.0)] * 3,
                (-1.0, 100.0),
                (0.0, 1.0),
                *[(-50.0, 50.0)] * 3,
                *[(0.0, 1.0)] * 2,
            ),
            box(*[(-1.0, 1.0)] * 4),
            {"camera": pixels(camera.width, camera.height)},
            render_mode=render_mode,
            images=images,
            delay=delay,
        )
        if not patterns or not set(patterns) <= set(PATTERNS):
            raise ValueError(f"patterns are {list(patterns)}; allowed are {', '.join(PATTERNS)}.")
        self._patterns = [Pattern(name) for name in patterns]
        self._setup = Setup(rover_speed=rover_speed, starts_on_ground=starts_on_ground, gusts=gusts, images=False)
        self._wind = wind
        self._scene = Scene(camera) if images or render_mode else None  # the same ground for all: it takes a moment

    def _begin(self, seed: int) -> None:
        bearing, speed = self.np_random.uniform(-math.pi, math.pi), self.np_random.uniform(0.0, self._wind)
        self.flight = LandingFlight(
            replace(
                self._setup,
                seed=seed,
                pattern=self._patterns[int(self.np_random.integers(len(self._patterns)))],
                wind=(speed * math.cos(bearing), speed * math.sin(bearing), 0.0),
            )
        )
        self._told = self.flight.advance()
        self._image: Image | None = None
        self._away, self._above = self._way()

    def _neutral(self) -> list[float]:
        return [0.0] * 4

    def _fly(self, command: list[float]) -> tuple[float, bool]:
        thrust, pitch, roll, yaw = command
        flight = self.flight
        flight.follow_command(DroneCommand(MAX_THRUST * thrust, MAX_TILT * pitch, MAX_TILT * roll, MAX_TILT * yaw))
        self._told = flight.advance()
        if flight.frames % IMAGE_EVERY == 1:
            self._image = None
        away, above = self._way()
        reward = self._away + 0.5 * self._above - away - 0.5 * above
        self._away, self._above = away, above
        if (touchdown := flight.touchdown) and touchdown.time > 0:
            return reward + (GOOD if touchdown.is_good else BAD - min(away, 5.0)), True
        is_lost = away > FARTHEST_M or above > FARTHEST_M
        return reward + LOST * is_lost, is_lost

    def _way(self) -> tuple[float, float]:
        """Return how far the pad is, horizontally and below the landing gear, m."""
        x, y, z = self.flight.drone.position.tolist()
        rover_x, rover_y = self.flight.world.rover.position.tolist()
        return math.hypot(x - rover_x, y - rover_y), abs(z - LANDING_GEAR - PAD_HEIGHT)

    def _state(self) -> list[float]:
        return observation_of(self._told)

    def _seen(self) -> dict[str, Image]:
        """Return the newest image: one frame in IMAGE_EVERY has another."""
        if self._image is None:
            assert self._scene
            drone, rover = self.flight.drone, self.flight.world.rover
            self._image = self._scene.render(drone.position, drone.rotation, rover.position)[..., ::-1].copy()
        return {"camera": self._image.copy()}

    def _info(self) -> dict[str, Any]:
        touchdown = self.flight.touchdown
        return {"distance": math.hypot(self._away, self._above), **({"touchdown": touchdown} if touchdown else {})}

    def row(self) -> dict[str, float | str]:
        return dict(zip(COLUMNS, self.flight.world.row(), strict=True))

    @property
    def said(self) -> str:
        touchdown = self.flight.touchdown
        return touchdown.describe() if touchdown and touchdown.time > 0 else ""
