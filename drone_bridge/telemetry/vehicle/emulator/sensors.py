# SPDX-License-Identifier: Apache-2.0
"""Sensors of a drone without GPS, with seeded noise.

Levelled axes have the drone's yaw, but not its tilt: x forward, y left, z up.
"""

from __future__ import annotations

import math

import numpy as np

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.motion.measurement import Measurement
from drone_bridge.telemetry.codec import Camera, DroneTelemetry, LandingPad
from drone_bridge.telemetry.units import Units
from drone_bridge.telemetry.vehicle.emulator.flight import GRAVITY, FlyingDrone
from drone_bridge.vision.drawn_camera import DrawnCamera

# Standard deviations of the noise.
ATTITUDE_NOISE = 0.003  # rad
RATE_NOISE = 0.005  # rad/s
ACCELERATION_NOISE = 0.05  # m/s^2
ALTITUDE_NOISE = 0.02  # m
CLIMB_NOISE = 0.03  # m/s
FLOW_NOISE = 0.03  # m/s
FLOW_NOISE_PER_METRE = 0.005  # m/s for each m of height: distant ground moves by fewer pixels
PAD_NOISE = 0.01  # m
PAD_NOISE_PER_METRE = 0.01  # m for each m of distance
CONFIDENCE_NOISE = 0.02

PAD_RANGE = 10.0  # m of vertical distance, beyond which the pad is too small to detect
PAD_NEAREST = 0.05  # m, below which it fills the image
_UPWARD = np.array([0.0, 0.0, GRAVITY])
#: Share of the detections that are lost at confidence 0; none is lost at confidence 1.
LARGEST_MISS_RATE = 0.2


class Sensors:
    """Sensors of the drone, all at its centre."""

    def __init__(self, camera: DrawnCamera, seed: int = 0) -> None:
        self._camera = camera
        self._generator = np.random.default_rng([seed, 1])  # independent of the noise of wind and ground

    def measure(self, drone: FlyingDrone, towards_pad: Vector) -> DroneTelemetry:
        """Return the current readings, without an image; `towards_pad` points to the pad's centre, world frame, m.

        The accelerometer is in the body frame: 9.81 along z at rest and level. The altimeter is a barometer, zeroed on
        the ground, so it measures the height above ground also above the rover. Velocity and pad are levelled.
        """
        height, climb = float(drone.position[2]), float(drone.velocity[2])
        rotation = drone.rotation
        noise = self._generator.standard_normal(14)
        force = rotation.T @ (drone.acceleration + _UPWARD)
        roll, pitch, yaw = (np.array([drone.roll, drone.pitch, drone.yaw]) + ATTITUDE_NOISE * noise[:3]).tolist()
        velocity = levelled(drone.velocity, drone.yaw) + (FLOW_NOISE + FLOW_NOISE_PER_METRE * height) * noise[3:6]
        altitude_noise, climb_noise = noise[12:].tolist()
        camera = Camera(self._camera.width, self._camera.height, self._camera.field_of_view)
        measured = Measurement(
            yaw=math.remainder(yaw, math.tau),
            velocity=BodyVelocity(*velocity.tolist()),
            height=height + ALTITUDE_NOISE * altitude_noise,
            roll=roll,
            pitch=pitch,
            rates=tuple(drone.body_rates + RATE_NOISE * noise[6:9]),
            acceleration=tuple(force + ACCELERATION_NOISE * noise[9:12]),
            climb=climb + CLIMB_NOISE * climb_noise,
        )
        return Units().telemetry(measured, camera, self._detect_pad(rotation, drone.yaw, towards_pad))

    def _detect_pad(self, rotation: Matrix, yaw: float, towards_pad: Vector) -> LandingPad | None:
        """Detect the pad, like software that processes the camera's images."""
        # Random numbers are always drawn, so that detections do not change later noise.
        noise = self._generator.standard_normal(4)
        chance = self._generator.random()
        distance = -float(towards_pad[2])
        if not PAD_NEAREST <= distance <= PAD_RANGE or not self._camera.sees(rotation, towards_pad):
            return None
        confidence = expected_confidence(towards_pad, rotation[:, 2]) + CONFIDENCE_NOISE * float(noise[3])
        confidence = min(max(confidence, 0.0), 1.0)
        if chance < LARGEST_MISS_RATE * (1 - confidence):
            return None
        deviation = PAD_NOISE + PAD_NOISE_PER_METRE * distance
        forward, left, up = levelled(towards_pad, yaw) + deviation * noise[:3]
        return LandingPad(float(forward), float(left), -float(up), confidence)


def expected_confidence(towards_pad: Vector, up: Vector) -> float:
    """Return 0 to 1, decreasing with the distance and with the angles off the axes of camera and plate.

    Both vectors are in the world frame; `up` is the body's up axis.
    """
    reach = float(np.linalg.norm(towards_pad))
    off_axis = -float(towards_pad @ up) / reach
    off_plate = -float(towards_pad[2]) / reach
    return max(0.0, (1.0 - (reach / (1.25 * PAD_RANGE)) ** 2) * off_axis * off_plate)


def levelled(vector: Vector, yaw: float) -> Vector:
    """Rotate a vector from the world frame to the level frame of a drone with this yaw, rad."""
    sine, cosine = math.sin(yaw), math.cos(yaw)
    x, y, z = vector
    return np.array([cosine * x + sine * y, cosine * y - sine * x, z])
