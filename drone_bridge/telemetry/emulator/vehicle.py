# SPDX-License-Identifier: Apache-2.0
"""The emulated drone as seen by its peer: commands in, telemetry out. Includes the rover."""

from __future__ import annotations

from dataclasses import dataclass

import cv2

from drone_bridge.motion.matrices import Triple
from drone_bridge.telemetry.codec import Camera, DroneCommand, DroneTelemetry, RoverTelemetry, Vector
from drone_bridge.telemetry.device import IMAGE_EVERY, PERIOD_S
from drone_bridge.telemetry.emulator.camera import DownwardCamera
from drone_bridge.telemetry.emulator.flight import Drone, GustyWind
from drone_bridge.telemetry.emulator.rover import ROVER_Z, Pattern, Rover
from drone_bridge.telemetry.emulator.scene import Image, Scene
from drone_bridge.telemetry.emulator.sensors import Sensors
from drone_bridge.telemetry.emulator.touchdown import Touchdown
from drone_bridge.telemetry.emulator.world import LANDING_GEAR, Phase, World, drone_near

JPEG_QUALITY = 70  # of 100


@dataclass(frozen=True, slots=True)
class Setup:
    """The initial conditions of a flight, which is reproducible with the same commands at the same frames."""

    seed: int = 0  # of the start, the wind, the noise, the ground, and the rover's random pattern
    pattern: Pattern = Pattern.STATIONARY
    rover_speed: float = 0.5  # m/s
    rover_amplitude: float = 2.0  # m
    height: float = 5.0  # m: where the drone starts
    starts_on_ground: bool = False  # instead
    wind: Triple = (0.0, 0.0, 0.0)  # m/s
    gusts: float = 0.3  # m/s, standard deviation
    images: bool = True  # False spares the time of rendering


class Vehicle:
    """One flight, frame by frame, without wire or clock."""

    def __init__(self, setup: Setup) -> None:
        self.frames = 0
        self.camera = DownwardCamera()
        rover = Rover(setup.pattern, setup.rover_speed, setup.rover_amplitude, setup.seed)
        self.world = World(
            drone=drone_near(rover, LANDING_GEAR if setup.starts_on_ground else setup.height, setup.seed),
            rover=rover,
            wind=GustyWind(setup.wind, setup.gusts, setup.seed),
            phase=Phase.ON_GROUND if setup.starts_on_ground else Phase.FLYING,
        )
        self._sensors = Sensors(self.camera, setup.seed)
        self._scene = Scene(self.camera, setup.seed) if setup.images else None

    @property
    def drone(self) -> Drone:
        return self.world.drone

    @property
    def touchdown(self) -> Touchdown | None:
        """The touchdown, or None in flight."""
        return self.world.touchdown if self.world.has_landed else None

    def follow_command(self, command: DroneCommand) -> None:
        self.drone.command = command

    def move_rover(self, rover: RoverTelemetry) -> None:
        """Move the rover to where its telemetry puts it, if it is to be moved that way."""
        if self.world.rover.pattern is Pattern.FOLLOW:
            self.world.rover.lead((rover.position.x, rover.position.y), (rover.velocity.x, rover.velocity.y))

    def advance(self) -> DroneTelemetry:
        """Advance one frame and return the telemetry at its end; one in IMAGE_EVERY has an image."""
        self.world.advance(PERIOD_S)
        has_image = self.frames % IMAGE_EVERY == 0
        self.frames += 1
        measured = self._sensors.measure(self.drone, self.world.towards_pad)
        return DroneTelemetry(
            imu=measured.imu,
            altimeter=measured.altimeter,
            velocity=measured.velocity,
            landing_pad=measured.landing_pad,
            camera=Camera(
                width=self.camera.width,
                height=self.camera.height,
                fov=self.camera.field_of_view,
                jpeg=self.photograph() if has_image else None,
            ),
            landed=self.world.has_landed,
            timestamp=self.world.time,
        )

    def photograph(self) -> bytes | None:
        """Return the current camera image as a JPEG, or None if the setup has no images."""
        if self._scene is None:
            return None
        seen = self._scene.render(self.drone.position, self.drone.rotation, self.world.rover.position)
        return jpeg(seen)

    def rover_telemetry(self) -> RoverTelemetry:
        rover = self.world.rover
        x, y = rover.position.tolist()
        vx, vy = rover.velocity.tolist()
        return RoverTelemetry(Vector(x, y, ROVER_Z), Vector(vx, vy, 0.0), rover.pattern.value, self.world.time)


def jpeg(image: Image) -> bytes:
    """Return an image (rows x columns x 3: blue, green, red) as a JPEG file."""
    encoded, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not encoded:
        raise ValueError(f"an image of {image.shape} can't be made a JPEG")
    return data.tobytes()
