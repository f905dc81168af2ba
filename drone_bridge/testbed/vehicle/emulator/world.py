# SPDX-License-Identifier: Apache-2.0
"""Simulated drone with two cameras in a seeded world of spheres. Axes are those of `testbed.device`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.matrices import Triple, Vector
from drone_bridge.motion.wind import NO_ROTATION, Wind, WindRotation
from drone_bridge.programs.program import TrajectoryFile, print_event
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState

Colour = tuple[int, int, int]  # red, green, blue, 0 to 255

RED: Colour = (255, 0, 0)
GREY: Colour = (128, 128, 128)


@dataclass(frozen=True, slots=True)
class Sphere:
    """Ball of one colour."""

    centre: Triple  # in the world frame, m
    radius: float  # m, above 0
    colour: Colour = RED


@dataclass(frozen=True, slots=True)
class SphereWorld:
    """Surroundings of the drone, which starts at the origin with heading 0. Spheres must not intersect."""

    targets: tuple[Sphere, ...]  # goals; the first one counts
    obstacles: tuple[Sphere, ...] = ()  # hide targets from view, without collisions
    wind: Triple = (0.0, 0.0, 0.0)  # constant velocity of the air in the world frame, m/s
    wind_rotation: WindRotation = NO_ROTATION
    ground: float | None = None  # height of a checkerboard ground, m, which ends a descent; None for white everywhere

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
        ground: float | None = None,
    ) -> SphereWorld:
        """Return the world of a seed, with another target (x, y, z) or wind if given.

        It has a red target of radius 0.5 m at any bearing, 4 to 12 m away, at most 35 degrees above or below the
        horizon; grey obstacles of 0.3 to 0.7 m radius, half of them near the path to the target; up to 1 m/s of wind.
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
            ground=ground,
        )


def _triple(vector: Vector) -> Triple:
    return float(vector[0]), float(vector[1]), float(vector[2])


def _random_obstacle(generator: np.random.Generator, spheres: list[Sphere], goal: Vector, near_the_way: bool) -> Sphere:
    """Return a grey sphere that is 1 m clear of the start and the target, and does not touch another sphere."""
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


# Rendering of spheres by the drone's two cameras: flat colours on white, without lighting or anti-aliasing.


Image = npt.NDArray[np.uint8]

WHITE = 255
#: Checkerboard ground: length of a tile, m; its shades of grey, which no target and no obstacle has; and the distance
#: at which tiles fade into their mean, m.
TILE_M = 2.0
DARK, LIGHT = 214, 240
FADED_M = 60.0
#: The ground is drawn in squares of this many pixels, which takes a ninth of the time.
COARSE = 3


class StereoCamera:
    """Two pinhole cameras side by side on the drone's pitch axis, looking forward.

    A pixel has the colour of the first object on the ray through its centre. Width and height are in pixels, the angles
    of view are edge to edge in degrees, the separation of the pinholes is in m.
    """

    def __init__(
        self, width: int, height: int, horizontal_angle: float, vertical_angle: float, separation: float
    ) -> None:
        self.width = width
        self.height = height
        self.separation = separation
        self._focal_x = width / 2 / math.tan(math.radians(horizontal_angle) / 2)  # pixels
        self._focal_y = height / 2 / math.tan(math.radians(vertical_angle) / 2)
        self._row_slopes = (np.arange(height) + 0.5 - height / 2) / self._focal_y  # down per forward
        rows, columns = (np.arange(0, length, COARSE) + COARSE / 2 for length in (height, width))
        right, down = np.meshgrid((columns - width / 2) / self._focal_x, (rows - height / 2) / self._focal_y)
        # Directions of rays to the ground: right, up, backward.
        self._rays = np.stack([right, -down, -np.ones_like(right)], axis=-1).astype(np.float32)
        self._images = np.empty((2, height, width, 3), np.uint8)
        # Rows are written as bytes: slicing a memoryview takes a third of the time of slicing an array.
        self._bytes = [memoryview(image.data).cast("B") for image in self._images]

    def render(self, state: DroneState, spheres: Sequence[Sphere], ground: float | None = None) -> tuple[Image, Image]:
        """Return the left and the right image, height x width x 3 (red, green, blue), top row first.

        The next call overwrites the images. They are adjacent in memory, left first. Spheres must not intersect each
        other. A ground at a height in m is drawn behind them, as if they were all above it.
        """
        self._images.fill(WHITE)
        offsets = (-self.separation / 2, self.separation / 2)
        for image, pixels, offset in zip(self._images, self._bytes, offsets, strict=True):
            pinhole = state.position + offset * state.rotation[:, 0]
            if ground is not None and pinhole[1] > ground:
                self._paint_ground(image, pinhole, state.rotation, ground)
            # Of two disjoint spheres, the one for which the pinhole has the smaller power (squared tangent length) is
            # in front: their radical plane separates them, and the pinhole is on its side. It is painted last.
            order = sorted(
                ((np.array(sphere.centre) - pinhole, sphere) for sphere in spheres),
                key=lambda seen: _power(seen[0], seen[1].radius),
                reverse=True,
            )
            for towards, sphere in order:
                right, up, backward = towards @ state.rotation
                self._paint(pixels, np.array([right, -up, -backward]), sphere)
        return self._images[0], self._images[1]

    def _paint_ground(self, image: Image, pinhole: Vector, rotation: Vector, ground: float) -> None:
        """Paint a checkerboard at a height, as seen from a pinhole above it."""
        x, y, z = (np.dot(self._rays, row.astype(np.float32)) for row in rotation)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            along = float(ground - pinhole[1]) / y  # 1 is the ray's length; below 0 above the horizon
            x = (x * along + float(pinhole[0])) * (1 / TILE_M)
            z = (z * along + float(pinhole[2])) * (1 / TILE_M)
            is_light = (np.floor(x).astype(np.int32) ^ np.floor(z).astype(np.int32)) & 1
            contrast = np.maximum(1 - along * (1 / FADED_M), 0) * ((LIGHT - DARK) / 2)
        shades = (LIGHT + DARK) / 2 + (2 * is_light - 1) * contrast
        coarse = np.where(y < 0, shades, WHITE).astype(np.uint8)
        wide = coarse.repeat(3 * COARSE, axis=1)[:, : 3 * self.width]
        pixels = image.reshape(self.height, -1)
        for row in range(min(COARSE, self.height)):
            rows = pixels[row::COARSE]
            rows[:] = wide[: len(rows)]

    def _paint(self, pixels: memoryview, centre: Vector, sphere: Sphere) -> None:
        """Paint a sphere, given its centre in the camera frame: right, down, forward."""
        colour_row = bytes(sphere.colour) * self.width
        power = _power(centre, sphere.radius)
        if power <= 0:  # the pinhole is inside
            pixels[:] = colour_row * self.height
            return
        starts, ends = self._spans(centre, power)
        for row in np.flatnonzero(starts < ends).tolist():
            start, end = int(starts[row]), int(ends[row])
            first = 3 * self.width * row
            pixels[first + 3 * start : first + 3 * end] = colour_row[: 3 * (end - start)]

    def _spans(self, centre: Vector, power: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first column of the sphere in each row, and the first column after it.

        A ray d = (u, v, 1) meets a sphere around c in front of the pinhole if d.c > 0 and
        (d.c)^2 - power (d.d) >= 0. These directions form a convex cone, therefore one interval in each row. Its ends
        are roots of a quadratic in u.
        """
        x, y, z = centre
        level = y * self._row_slopes + z
        a = x * x - power
        b = x * level
        c = level * level - power * (self._row_slopes**2 + 1)
        discriminant = b * b - a * c
        with np.errstate(divide="ignore", invalid="ignore"):
            # Without cancellation, and with a correct infinite root when a is 0.
            q = -(b + np.copysign(np.sqrt(np.maximum(discriminant, 0)), b))
            roots = np.sort(np.stack([q / a, c / q]), axis=0)
        smaller, larger = roots
        if a < 0:  # between the roots lies the sphere, or its mirror image behind the pinhole
            start, end = smaller, larger
            visible = (discriminant >= 0) & (level - x * b / a > 0)
        else:  # the sphere reaches beyond the plane of the pinhole, on one side
            beyond = np.full_like(level, math.copysign(np.inf, x))
            start, end = (larger, beyond) if x > 0 else (beyond, smaller)
            visible = ~np.isnan(larger)
        first = np.ceil(np.clip(self._column(np.where(visible, start, 0)), 0, self.width))
        after = np.floor(np.clip(self._column(np.where(visible, end, 0)), -1, self.width - 1)) + 1
        return np.where(visible, first, self.width).astype(np.int64), after.astype(np.int64)

    def _column(self, slope: Vector) -> Vector:
        """Return the column, with pixel centres at whole numbers, of slopes (right per forward)."""
        return slope * self._focal_x + (self.width - 1) / 2


def _power(centre: Vector, radius: float) -> float:
    """Return the squared length of a tangent to a sphere around centre, negative inside."""
    return float(centre @ centre) - radius * radius


# Flight through a world.


REACHED_WITHIN_M = 0.75  # of the target's centre
EDGE_OF_THE_WORLD_M = 1e6  # single-precision positions are useless beyond it

# Seconds, metres, degrees, newtons.
_STATE_COLUMNS = ("time", "x", "y", "z", "heading", "pitch", "roll", "vx", "vy", "vz")
#: Each row has a state, and the rates and thrust of the step that led to it.
COLUMNS = (*_STATE_COLUMNS, "pitch_rate", "roll_rate", "yaw_rate", "thrust", "distance")


class WorldFlight:
    """State of a drone in a world, the wind, and the smallest distance to the target."""

    def __init__(self, world: SphereWorld, airframe: Airframe, step: float, gusts: float = 0.0, seed: int = 0) -> None:
        """Start a flight. `step` is in s. `gusts` (m/s, standard deviation) are reproducible with the seed."""
        self.state = DroneState.at_start()
        self.steps = 0
        self.smallest_distance = math.inf  # m
        self.reached_at: float | None = None  # s of simulated time
        self._target: Sphere = world.targets[0]
        self._airframe = airframe
        self._step = step
        self._wind = Wind(world.wind, gusts, seed=seed)
        self._wind_rotation = world.wind_rotation
        self._ground = -math.inf if world.ground is None else world.ground
        self._update_distance()

    @property
    def distance(self) -> float:
        """Current distance to the target's centre, m."""
        return math.dist(self.state.position, self._target.centre)

    @property
    def arrival(self) -> str:
        """Line of text for people and programs; empty until the target was reached."""
        if self.reached_at is None:
            return ""
        return f"target reached at t={self.reached_at:.2f} s, distance {self.distance:.2f} m"

    @property
    def has_left_the_world(self) -> bool:
        """Whether the position is too far away to compute with."""
        return math.hypot(*self.state.position) > EDGE_OF_THE_WORLD_M

    def advance(self, motion: DroneInput) -> None:
        rotation = self._wind_rotation.at(self.state.time + self._step / 2)
        self.state = self.state.advance(self._airframe, motion, self._wind.velocity, self._step, rotation)
        x, y, z = self.state.position.tolist()
        if y < self._ground:
            self.state = replace(self.state, position=np.array([x, self._ground, z]), velocity=np.zeros(3))
        self._wind.advance(self._step)
        self.steps += 1
        self._update_distance()

    def row(self, motion: DroneInput) -> list[float]:
        """Return the values of COLUMNS: the state, and the motion that led to it."""
        values = [self.state.time, *self.state.position, *self.state.angles, *self.state.velocity]
        return [*values, motion.pitch_rate, motion.roll_rate, motion.yaw_rate, motion.thrust, self.distance]

    def _update_distance(self) -> None:
        self.smallest_distance = min(self.smallest_distance, self.distance)
        if self.reached_at is None and self.distance <= REACHED_WITHIN_M:
            self.reached_at = self.state.time


# Simulated drone of the emulator: flights through a world, seen by two cameras.


@dataclass(slots=True)
class SimulatedDrone:
    """Drone that advances one step of simulated time per reply, and restarts for each autopilot."""

    world: SphereWorld
    camera: StereoCamera
    constants: Constants  # that are announced
    step: float  # s
    gusts: float  # m/s
    seed: int
    trajectory: TrajectoryFile | None = None  # of the newest flight
    steps: int = 0  # of all flights with this autopilot
    flight: WorldFlight = field(init=False)

    def begin(self) -> None:
        """Restart at the origin, for another autopilot."""
        self.steps = 0
        self._take_off()

    def sense(self) -> SensorFrame:
        """Return the current frame, with the values of all layouts."""
        state = self.flight.state
        left, right = self.camera.render(state, self.world.spheres, self.world.ground)
        heading, pitch, roll = state.angles
        x, y, z = state.position.tolist()
        return SensorFrame(left.data, right.data, state.time, pitch, roll, yaw=heading, position=(x, y, z))

    def fly(self, motion: MotionParameters) -> None:
        """Fly one step."""
        flown, flight = DroneInput.from_answer(motion, AngleUnit.DEGREES), self.flight
        was_reached = flight.reached_at is not None
        flight.advance(flown)
        self.steps += 1
        if self.trajectory:
            self.trajectory.write(flight.row(flown))
        if flight.reached_at is not None and not was_reached:
            print_event(flight.arrival)

    def _take_off(self) -> None:
        airframe = Airframe.from_constants(self.constants)
        self.flight = WorldFlight(self.world, airframe, self.step, self.gusts, self.seed)
        if self.trajectory:
            self.trajectory.restart()
            self.trajectory.write(self.flight.row(DroneInput()))
