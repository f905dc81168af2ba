# SPDX-License-Identifier: Apache-2.0
"""The testbed's world without pictures: a drone with one thrust axis, wind, and spheres to fly to.

World frame: right-handed, metres, y up; heading 0 looks along -z and has +x to its right.
Body frame: x right, y up, z backward, so that both frames agree at heading 0.
Angles are degrees, as the testbed protocol has them: heading + is to the right, pitch + looks down, roll + banks right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from drone_bridge.geometry.matrices import Matrix, Triple, Vector, rotation_from_vector

Colour = tuple[int, int, int]  # red, green, blue, 0 to 255

RED: Colour = (255, 0, 0)
GREY: Colour = (128, 128, 128)

# Gauss-Legendre points in (0, 1): with 8 of them the integrals over one step are exact to rounding as long as the
# drone turns less than about half a revolution in it.
_NODES, _WEIGHTS = (np.array(values) / 2 for values in np.polynomial.legendre.leggauss(8))
_NODES += 0.5


@dataclass(frozen=True, slots=True)
class Sphere:
    """A ball of one flat colour. Raises ValueError when it has no place or no size."""

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
    """What surrounds the drone, which starts at the origin with heading 0.

    Raises ValueError without a target, and when two spheres intersect: the camera relies on that.
    """

    targets: tuple[Sphere, ...]  # where to fly; the first one counts
    obstacles: tuple[Sphere, ...] = ()  # they hide targets from view, but nothing collides
    wind: Triple = (0.0, 0.0, 0.0)  # constant velocity of the air in the world frame, m/s

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError("a world needs at least one target")
        for one, other in combinations(self.spheres, 2):
            if math.dist(one.centre, other.centre) <= one.radius + other.radius:
                raise ValueError(f"spheres must not intersect: {one} and {other} do")

    @property
    def spheres(self) -> tuple[Sphere, ...]:
        """Everything that can be seen."""
        return self.targets + self.obstacles

    @classmethod
    def random(
        cls, seed: int, obstacles: int = 0, *, target: Triple | None = None, wind: Triple | None = None
    ) -> World:
        """Return the world of this seed, with another target (x, y, z) or wind if given.

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


@dataclass(frozen=True, slots=True)
class Airframe:
    """Constants of the flight dynamics."""

    mass: float = 1.0  # kg
    gravity: float = 9.81  # m/s^2, positive downwards
    drag: float = 0.2  # kg/s: the air's force per unit of air speed


@dataclass(frozen=True, slots=True)
class Motion:
    """What the autopilot answers: body rates, which act at once, and thrust along the body's up.

    Nothing is clamped to what a drone can do: the testbeds in the wild clamp nothing either.
    """

    pitch_rate: float = 0.0  # degrees/s, + turns the nose down
    roll_rate: float = 0.0  # degrees/s, + banks right
    yaw_rate: float = 0.0  # degrees/s, + turns right
    thrust: float = 0.0  # N


@dataclass(frozen=True, slots=True)
class DroneState:
    """Where the drone is and how it moves."""

    position: Vector  # midpoint between the pinholes in the world frame, m
    velocity: Vector  # in the world frame, m/s
    rotation: Matrix  # takes vectors from the body frame to the world frame
    time: float = 0.0  # s since the start

    @classmethod
    def at_start(cls) -> DroneState:
        """Return the drone at rest and level in the origin, with heading 0."""
        return cls(np.zeros(3), np.zeros(3), np.eye(3))

    @property
    def angles(self) -> Triple:
        """Heading, pitch, roll in degrees."""
        return angles_of_testbed_rotation(self.rotation)

    def distance_to(self, sphere: Sphere) -> float:
        """Return the distance from the drone to the centre of the sphere, m."""
        return math.dist(self.position, sphere.centre)

    def advance(self, airframe: Airframe, motion: Motion, wind: Vector, step: float) -> DroneState:
        """Return the state after step seconds of constant rates, thrust and wind.

        m dv/dt = thrust * body up + m g down - drag (v - wind) is linear in v, so its exact solution is a convolution
        of the forces with exp(-drag t / m). It is evaluated with the attitude turning through the step, not frozen.
        """
        rates = -np.radians([motion.pitch_rate, motion.yaw_rate, motion.roll_rate])  # about body x, y, z
        speed = float(np.linalg.norm(rates))
        axis = rates / speed if speed else np.array([0.0, 1.0, 0.0])

        angles = (speed * step * _NODES)[:, np.newaxis]
        body_up = np.array([0.0, 1.0, 0.0])
        along = axis * axis[1]
        directions = (along + np.cos(angles) * (body_up - along) + np.sin(angles) * np.cross(axis, body_up)) @ (
            self.rotation.T
        )
        decay = airframe.drag / airframe.mass
        accelerations = (motion.thrust * directions + airframe.drag * wind) / airframe.mass
        accelerations[:, 1] -= airframe.gravity

        remaining = step * (1 - _NODES)
        gained = step * _WEIGHTS * np.exp(-decay * remaining)
        moved = step * _WEIGHTS * _time_in_motion(decay, remaining)
        return DroneState(
            position=self.position + _time_in_motion(decay, np.array(step)) * self.velocity + moved @ accelerations,
            velocity=math.exp(-decay * step) * self.velocity + gained @ accelerations,
            rotation=_orthonormal(self.rotation @ rotation_from_vector(rates * step)),
            time=self.time + step,
        )


def _time_in_motion(decay: float, time: Vector) -> Vector:
    """Return how far a unit of speed carries in the given time when it decays with the given rate in 1/s."""
    if not decay:
        return time
    moved: Vector = -np.expm1(-decay * time) / decay
    return moved


def _orthonormal(rotation: Matrix) -> Matrix:
    """Return the rotation with the rounding errors of one multiplication removed (one Newton step)."""
    corrected: Matrix = rotation @ (1.5 * np.eye(3) - 0.5 * rotation.T @ rotation)
    return corrected


def rotation_from_testbed_angles(heading: float, pitch: float, roll: float) -> Matrix:
    """Return the rotation from body to world for angles in degrees: first roll, then pitch, then heading."""
    right, up, backward = np.eye(3)
    return (
        rotation_from_vector(-math.radians(heading) * up)
        @ rotation_from_vector(-math.radians(pitch) * right)
        @ rotation_from_vector(-math.radians(roll) * backward)
    )


def angles_of_testbed_rotation(rotation: Matrix) -> Triple:
    """Return heading, pitch, roll in degrees: +-180, +-90, +-180.

    Looking straight down or up, heading and roll turn about the same axis; roll is 0 then.
    """
    right, up, forward = rotation[:, 0], rotation[:, 1], -rotation[:, 2]
    level = math.hypot(forward[0], forward[2])
    pitch = math.degrees(math.atan2(-forward[1], level))
    if level < 1e-9:
        return math.degrees(math.atan2(right[2], right[0])), pitch, 0.0
    heading = math.degrees(math.atan2(forward[0], -forward[2]))
    return heading, pitch, math.degrees(math.atan2(-right[1], up[1]))
