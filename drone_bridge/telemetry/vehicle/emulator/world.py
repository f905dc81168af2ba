# SPDX-License-Identifier: Apache-2.0
"""World of drone, rover and ground, with their contacts, and the flight in it from the peer's view.

Positions are in metres in a world with level x and y, and z up from the ground.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from drone_bridge.motion.matrices import Triple, Vector
from drone_bridge.motion.wind import Wind
from drone_bridge.telemetry.codec import IMAGE_EVERY, PERIOD_S, DroneCommand, DroneTelemetry, RoverTelemetry
from drone_bridge.telemetry.codec import Vector as WireVector
from drone_bridge.telemetry.vehicle.emulator.flight import FlyingDrone
from drone_bridge.telemetry.vehicle.emulator.rover import ROVER_Z, Rover, RoverPattern
from drone_bridge.telemetry.vehicle.emulator.scene import (
    CAMERA,
    JPEG_QUALITY,
    PAD_HEIGHT,
    ROVER_LENGTH,
    ROVER_WIDTH,
    LandingScene,
)
from drone_bridge.telemetry.vehicle.emulator.sensors import Sensors
from drone_bridge.vision.jpegs import jpeg_of_rgb

#: Distance of the landing gear below the middle of the drone, where the camera and all sensors are, m.
LANDING_GEAR = 0.10
STEP_S = 0.005
#: Thrust above which a standing drone takes off. It exceeds most gusts.
TAKE_OFF_THRUST = 0.2
#: Scale of gusts along z, which are weaker near the ground than those along x and y.
VERTICAL_SHARE_OF_GUSTS = 0.3
# Distance from the rover of a drone that starts in the air, drawn by the seed.
NEAREST_START = 1.0  # m
FARTHEST_START = 3.0

#: Seconds, metres, degrees, metres per second, and the command as on the wire.
COLUMNS = (
    *("time", "phase", "x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz"),
    *("rover_x", "rover_y", "rover_vx", "rover_vy"),
    *("thrust_command", "pitch_command", "roll_command", "yaw_command"),
)


class LandingPhase(str, Enum):
    """Surface that the drone stands on, or flight."""

    FLYING = "flying"
    ON_ROVER = "on rover"
    ON_GROUND = "on ground"


# Limits of a good landing.
MAX_POSITION_ERROR = 0.35  # m from the middle of the pad: the landing gear then stands on the plate
MAX_VERTICAL_SPEED = 1.0  # m/s
MAX_RELATIVE_SPEED = 0.7  # m/s across the pad


@dataclass(frozen=True, slots=True)
class Touchdown:
    """Touchdown of the drone, on the rover or beside it."""

    time: float  # s
    on_rover: bool
    position_error: float  # m, horizontal, from the middle of the pad
    vertical_speed: float  # m/s, downwards
    relative_speed: float  # m/s, horizontal, relative to the surface

    @property
    def is_good(self) -> bool:
        """Whether the drone has landed gently on the pad."""
        return (
            self.on_rover
            and self.position_error <= MAX_POSITION_ERROR
            and self.vertical_speed <= MAX_VERTICAL_SPEED
            and self.relative_speed <= MAX_RELATIVE_SPEED
        )

    def describe(self) -> str:
        """Return a line of text for people and programs."""
        return (
            f"touchdown on the {'rover' if self.on_rover else 'ground'} at t={self.time:.2f} s: "
            f"position error {self.position_error:.3f} m, vertical speed {self.vertical_speed:.2f} m/s, "
            f"relative speed {self.relative_speed:.2f} m/s, {'good' if self.is_good else 'bad'}"
        )


class LandingWorld:
    """All moving objects. A drone that hits the rover's sides falls to the ground, from where it can climb again."""

    def __init__(self, drone: FlyingDrone, rover: Rover, wind: Wind, phase: LandingPhase = LandingPhase.FLYING) -> None:
        self.drone = drone
        self.rover = rover
        self.time = 0.0  # s
        self.phase = phase
        self.touchdown: Touchdown | None = None  # the last one
        self.wind = wind
        self._offset: Vector = np.zeros(2)  # m, relative to the rover while on it
        if phase is not LandingPhase.FLYING:
            self._stand()

    @property
    def has_landed(self) -> bool:
        """Whether the drone stands on the ground or the rover."""
        return self.phase is not LandingPhase.FLYING

    @property
    def towards_pad(self) -> Vector:
        """Vector from the drone to the pad's centre, world frame, m."""
        return np.array([*self.rover.position, PAD_HEIGHT]) - self.drone.position

    def advance(self, seconds: float) -> None:
        """Advance in steps of STEP_S."""
        for _ in range(round(seconds / STEP_S)):
            self._step()

    def row(self) -> list[float | str]:
        drone, rover = self.drone, self.rover
        angles = [math.degrees(angle) for angle in (drone.roll, drone.pitch, drone.yaw)]
        command = drone.command
        return [
            *(self.time, self.phase.value, *drone.position.tolist(), *angles, *drone.velocity.tolist()),
            *(*rover.position.tolist(), *rover.velocity.tolist()),
            *(command.thrust, command.pitch, command.roll, command.yaw),
        ]

    def describe(self) -> str:
        x, y, z = self.drone.position
        rover_x, rover_y = self.rover.position
        return (
            f"t={self.time:.1f} s, {self.phase.value}, x={x:.2f} y={y:.2f} z={z:.2f} m, "
            f"rover x={rover_x:.2f} y={rover_y:.2f} m"
        )

    def _is_above_rover(self) -> bool:
        x, y = (self.drone.position[:2] - self.rover.position).tolist()
        return bool(abs(x) <= ROVER_LENGTH / 2 and abs(y) <= ROVER_WIDTH / 2)

    def _step(self) -> None:
        self.time += STEP_S
        was_above = self._is_above_rover()
        self.rover.advance(STEP_S)
        self.wind.advance(STEP_S)
        if self.phase is LandingPhase.FLYING or self.drone.thrust > TAKE_OFF_THRUST:
            self.phase = LandingPhase.FLYING
            height_before = float(self.drone.position[2])
            self.drone.advance(STEP_S, self.wind.velocity)
            self._check_touchdown(height_before, was_above)
        if self.phase is not LandingPhase.FLYING:
            self._stand()

    def _check_touchdown(self, height_before: float, was_above: bool) -> None:
        foot_before, foot = height_before - LANDING_GEAR, float(self.drone.position[2]) - LANDING_GEAR
        above_rover = self._is_above_rover()
        falling = self.drone.velocity[2] < 0
        if above_rover and foot <= PAD_HEIGHT <= foot_before and falling:
            self._touch_down(LandingPhase.ON_ROVER)
        elif (above_rover and foot < PAD_HEIGHT and not was_above) or (foot <= 0 and falling):
            self._touch_down(LandingPhase.ON_GROUND)

    def _touch_down(self, phase: LandingPhase) -> None:
        on_rover = phase is LandingPhase.ON_ROVER
        self.phase = phase
        self._offset = self.drone.position[:2] - self.rover.position
        across = self.drone.velocity[:2] - (self.rover.velocity if on_rover else 0.0)
        self.touchdown = Touchdown(
            time=self.time,
            on_rover=on_rover,
            position_error=float(np.linalg.norm(self._offset)),
            vertical_speed=-float(self.drone.velocity[2]),
            relative_speed=float(np.linalg.norm(across)),
        )

    def _stand(self) -> None:
        if self.phase is LandingPhase.ON_ROVER:
            x, y = self.rover.position + self._offset
            velocity = np.array([*self.rover.velocity, 0.0])
            self.drone.stand(STEP_S, np.array([x, y, PAD_HEIGHT + LANDING_GEAR]), velocity)
        else:
            x, y, _ = self.drone.position.tolist()
            self.drone.stand(STEP_S, np.array([x, y, LANDING_GEAR]), np.zeros(3))


def drone_near(rover: Rover, height: float, seed: int) -> FlyingDrone:
    """Return a drone at rest 1 to 3 m beside the rover, in a random direction with a random heading; `height` in m."""
    generator = random.Random(f"start {seed}")
    bearing, yaw = generator.uniform(-math.pi, math.pi), generator.uniform(-math.pi, math.pi)
    distance = generator.uniform(NEAREST_START, FARTHEST_START)
    x, y = rover.position
    return FlyingDrone((x + distance * math.cos(bearing), y + distance * math.sin(bearing), height), yaw)


@dataclass(frozen=True, slots=True)
class FlightSetup:
    """Initial conditions of a flight. The same commands at the same frames reproduce it."""

    seed: int = 0  # of the start, the wind, the noise, the ground, and the rover's random pattern
    pattern: RoverPattern = RoverPattern.STATIONARY
    rover_speed: float = 0.5  # m/s
    rover_amplitude: float = 2.0  # m
    height: float = 5.0  # m: start of the drone
    starts_on_ground: bool = False  # instead of in the air
    wind: Triple = (0.0, 0.0, 0.0)  # m/s
    gusts: float = 0.3  # m/s, standard deviation
    images: bool = True  # False saves the time for rendering


class LandingFlight:
    """Flight, frame by frame, without wire or clock."""

    def __init__(self, setup: FlightSetup) -> None:
        self.frames = 0
        self.camera = CAMERA
        rover = Rover(setup.pattern, setup.rover_speed, setup.rover_amplitude, setup.seed)
        self.world = LandingWorld(
            drone=drone_near(rover, LANDING_GEAR if setup.starts_on_ground else setup.height, setup.seed),
            rover=rover,
            wind=Wind(setup.wind, setup.gusts, seed=setup.seed, third_share=VERTICAL_SHARE_OF_GUSTS),
            phase=LandingPhase.ON_GROUND if setup.starts_on_ground else LandingPhase.FLYING,
        )
        self._sensors = Sensors(self.camera, setup.seed)
        self._scene = LandingScene(self.camera, setup.seed) if setup.images else None

    @property
    def drone(self) -> FlyingDrone:
        return self.world.drone

    @property
    def touchdown(self) -> Touchdown | None:
        """The touchdown, or None in flight."""
        return self.world.touchdown if self.world.has_landed else None

    def follow_command(self, command: DroneCommand) -> None:
        self.drone.command = command

    def move_rover(self, rover: RoverTelemetry) -> None:
        """Move the rover to the position in its telemetry, if its pattern is `follow`."""
        if self.world.rover.pattern is RoverPattern.FOLLOW:
            self.world.rover.lead((rover.position.x, rover.position.y), (rover.velocity.x, rover.velocity.y))

    def advance(self) -> DroneTelemetry:
        """Advance one frame and return the telemetry at its end. One of IMAGE_EVERY frames has an image."""
        self.world.advance(PERIOD_S)
        has_image = self.frames % IMAGE_EVERY == 0
        self.frames += 1
        measured = self._sensors.measure(self.drone, self.world.towards_pad)
        image = self.photograph() if has_image else None
        camera = replace(measured.camera, jpeg=image) if image else measured.camera
        return replace(measured, camera=camera, landed=self.world.has_landed, timestamp=self.world.time)

    def photograph(self) -> bytes | None:
        """Return the current camera image as a JPEG, or None if the setup has no images."""
        if self._scene is None:
            return None
        image = self._scene.render(self.drone.position, self.drone.rotation, self.world.rover.position)
        return jpeg_of_rgb(image[..., ::-1], JPEG_QUALITY)

    def rover_telemetry(self) -> RoverTelemetry:
        rover = self.world.rover
        x, y = rover.position.tolist()
        vx, vy = rover.velocity.tolist()
        return RoverTelemetry(WireVector(x, y, ROVER_Z), WireVector(vx, vy, 0.0), rover.pattern.value, self.world.time)
