# SPDX-License-Identifier: Apache-2.0
"""The testbed's world without rendering: wind, obstacles, targets. Axes are those of `vehicle_side.testbed.motion`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from drone_bridge.motion.matrices import Triple, Vector
from drone_bridge.motion.wind import NO_ROTATION, WindRotation

Colour = tuple[int, int, int]  # red, green, blue, 0 to 255

RED: Colour = (255, 0, 0)
GREY: Colour = (128, 128, 128)


@dataclass(frozen=True, slots=True)
class Sphere:
    """A ball of one colour. Raises ValueError for impossible values."""

    centre: Triple  # in the world frame, m
    radius: float  # m, above 0
    colour: Colour = RED

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.centre)):
            raise ValueError(f"a sphere's centre must be finite, not {self.centre}")
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"a sphere's radius must be above 0 m, not {self.radius}")


@dataclass(frozen=True, slots=True)
class World:
    """The drone's surroundings; it starts at the origin with heading 0.

    Raises ValueError without a target, and when two spheres intersect: the camera relies on that.
    """

    targets: tuple[Sphere, ...]  # where to fly; the first one counts
    obstacles: tuple[Sphere, ...] = ()  # they hide targets from view, but nothing collides
    wind: Triple = (0.0, 0.0, 0.0)  # constant velocity of the air in the world frame, m/s
    wind_rotation: WindRotation = NO_ROTATION

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError("a world needs at least one target")
        for one, other in combinations(self.spheres, 2):
            if math.dist(one.centre, other.centre) <= one.radius + other.radius:
                raise ValueError(f"spheres must not intersect: {one} and {other} do")

    @property
    def spheres(self) -> tuple[Sphere, ...]:
        return self.targets + self.obstacles

    @classmethod
    def random(
        cls,
        seed: int,
        obstacles: int = 0,
        *,
        target: Triple | None = None,
        wind: Triple | None = None,
        wind_rotation: WindRotation = NO_ROTATION,
    ) -> World:
        """Return the world of a seed, with another target (x, y, z) or wind if given.

        A red target of radius 0.5 m at any bearing, 4 to 12 m away, at most 35 degrees above or below the horizon;
        grey obstacles of 0.3 to 0.7 m radius, half of them near the way to the target; up to 1 m/s of wind.
        """
        generator = np.random.default_rng(seed)
        bearing = generator.uniform(-math.pi, math.pi)
        elevation = math.radians(generator.uniform(-35, 35))
        distance = generator.uniform(4, 12)
        seeded_target = distance * np.array(
            [math.cos(elevation) * math.sin(bearing), math.sin(elevation), -math.cos(elevation) * math.cos(bearing)]
        )
        wind_direction = generator.uniform(-math.pi, math.pi)
        wind_speed = generator.uniform(0, 1)
        seeded_wind = wind_speed * np.array([math.sin(wind_direction), 0, -math.cos(wind_direction)])
        goal = np.array(target) if target is not None else seeded_target
        spheres = [Sphere(_triple(goal), 0.5, RED)]
        for index in range(obstacles):
            spheres.append(_random_obstacle(generator, spheres, goal, near_the_way=index % 2 == 0))
        return cls(
            targets=(spheres[0],),
            obstacles=tuple(spheres[1:]),
            wind=wind if wind is not None else _triple(seeded_wind),
            wind_rotation=wind_rotation,
        )


def _triple(vector: Vector) -> Triple:
    return float(vector[0]), float(vector[1]), float(vector[2])


def _random_obstacle(generator: np.random.Generator, spheres: list[Sphere], goal: Vector, near_the_way: bool) -> Sphere:
    """Return a grey sphere that leaves 1 m of room around the start and the target and touches no other sphere."""
    for _ in range(1000):
        radius = generator.uniform(0.3, 0.7)
        if near_the_way:
            centre = goal * generator.uniform(0.3, 0.8) + generator.normal(0, 0.8, 3)
        else:
            centre = generator.uniform(-10, 10, 3) * (1, 0.5, 1)
        clear_of_start = float(np.linalg.norm(centre)) > radius + 1
        clear_of_spheres = all(
            math.dist(centre, sphere.centre) > radius + sphere.radius + (1 if sphere.colour == RED else 0.1)
            for sphere in spheres
        )
        if clear_of_start and clear_of_spheres:
            return Sphere(_triple(centre), float(radius), GREY)
    raise ValueError(f"no room left for another obstacle beside {len(spheres)} spheres")
