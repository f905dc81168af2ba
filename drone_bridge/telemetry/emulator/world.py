# SPDX-License-Identifier: Apache-2.0
"""The world of drone, rover and ground, with their contacts.

Positions are metres in a world with x and y level and z up from the ground.
"""

from __future__ import annotations

import math
import random
from enum import Enum

import numpy as np

from drone_bridge.telemetry.emulator.flight import Drone, GustyWind, Vector
from drone_bridge.telemetry.emulator.pad import PAD_HEIGHT
from drone_bridge.telemetry.emulator.rover import Rover
from drone_bridge.telemetry.emulator.scene import ROVER_LENGTH, ROVER_WIDTH
from drone_bridge.telemetry.emulator.touchdown import Touchdown

#: How far the landing gear reaches below the middle of the drone, where the camera and all sensors are, m.
LANDING_GEAR = 0.10
STEP_S = 0.005
#: A drone that stands takes off when its motors have come to more thrust than this, which beats most gusts.
TAKE_OFF_THRUST = 0.2
# Where a drone that starts in the air is from the rover, drawn by the seed.
NEAREST_START = 1.0  # m
FARTHEST_START = 3.0

#: Seconds, metres, degrees, metres per second, and the command as the wire has it.
COLUMNS = (
    *("time", "phase", "x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz"),
    *("rover_x", "rover_y", "rover_vx", "rover_vy"),
    *("thrust_command", "pitch_command", "roll_command", "yaw_command"),
)


class Phase(str, Enum):
    """What the drone stands on."""

    FLYING = "flying"
    ON_ROVER = "on rover"
    ON_GROUND = "on ground"


class World:
    """Everything that moves. A drone that hits the rover's sides falls to the ground."""

    def __init__(self, drone: Drone, rover: Rover, wind: GustyWind, phase: Phase = Phase.FLYING) -> None:
        self.drone = drone
        self.rover = rover
        self.time = 0.0  # s
        self.phase = phase
        self.touchdown: Touchdown | None = None  # the last one
        self._wind = wind
        self._stands_at: Vector = np.zeros(2)  # m, seen from the rover, while on it
        if phase is not Phase.FLYING:
            self._stand()

    @property
    def has_landed(self) -> bool:
        """Whether the drone stands on the ground or the rover."""
        return self.phase is not Phase.FLYING

    @property
    def towards_pad(self) -> Vector:
        """The vector from the drone to the pad's centre, world frame, m."""
        return np.array([*self.rover.position, PAD_HEIGHT]) - self.drone.position

    def advance(self, seconds: float) -> None:
        """Advance in steps of STEP_S."""
        for _ in range(round(seconds / STEP_S)):
            self._step()

    def row(self) -> list[float | str]:
        drone, rover = self.drone, self.rover
        angles = [math.degrees(angle) for angle in (drone.roll, drone.pitch, drone.yaw)]
        told = drone.command
        return [
            *(self.time, self.phase.value, *drone.position.tolist(), *angles, *drone.velocity.tolist()),
            *(*rover.position.tolist(), *rover.velocity.tolist()),
            *(told.thrust, told.pitch, told.roll, told.yaw),
        ]

    def describe(self) -> str:
        x, y, z = self.drone.position
        rover_x, rover_y = self.rover.position
        return (
            f"t={self.time:.1f} s, {self.phase.value}, x={x:.2f} y={y:.2f} z={z:.2f} m, "
            f"rover x={rover_x:.2f} y={rover_y:.2f} m"
        )

    def _step(self) -> None:
        self.time += STEP_S
        self.rover.advance(STEP_S)
        self._wind.advance(STEP_S)
        if self.phase is Phase.FLYING or self.drone.thrust > TAKE_OFF_THRUST:
            self.phase = Phase.FLYING
            height_before = float(self.drone.position[2])
            self.drone.advance(STEP_S, self._wind.velocity)
            self._look_for_touchdown(height_before)
        if self.phase is not Phase.FLYING:
            self._stand()

    def _look_for_touchdown(self, height_before: float) -> None:
        x, y = self.drone.position[:2] - self.rover.position
        foot_before, foot = height_before - LANDING_GEAR, float(self.drone.position[2]) - LANDING_GEAR
        above_rover = abs(x) <= ROVER_LENGTH / 2 and abs(y) <= ROVER_WIDTH / 2
        falling = self.drone.velocity[2] < 0
        if above_rover and foot <= PAD_HEIGHT <= foot_before and falling:
            self._touch_down(Phase.ON_ROVER)
        elif (above_rover and foot < PAD_HEIGHT and foot_before < PAD_HEIGHT) or (foot <= 0 and falling):
            self._touch_down(Phase.ON_GROUND)

    def _touch_down(self, phase: Phase) -> None:
        on_rover = phase is Phase.ON_ROVER
        self.phase = phase
        self._stands_at = self.drone.position[:2] - self.rover.position
        across = self.drone.velocity[:2] - (self.rover.velocity if on_rover else 0.0)
        self.touchdown = Touchdown(
            time=self.time,
            on_rover=on_rover,
            position_error=float(np.linalg.norm(self._stands_at)),
            vertical_speed=-float(self.drone.velocity[2]),
            relative_speed=float(np.linalg.norm(across)),
        )

    def _stand(self) -> None:
        if self.phase is Phase.ON_ROVER:
            x, y = self.rover.position + self._stands_at
            velocity = np.array([*self.rover.velocity, 0.0])
            self.drone.stand(STEP_S, np.array([x, y, PAD_HEIGHT + LANDING_GEAR]), velocity)
        else:
            x, y = self.drone.position[:2]
            self.drone.stand(STEP_S, np.array([x, y, LANDING_GEAR]), np.zeros(3))


def drone_near(rover: Rover, height: float, seed: int) -> Drone:
    """Return a drone at rest 1 to 3 m beside the rover, in any direction, with any heading; `height` in m."""
    generator = random.Random(f"start {seed}")
    bearing, yaw = generator.uniform(-math.pi, math.pi), generator.uniform(-math.pi, math.pi)
    distance = generator.uniform(NEAREST_START, FARTHEST_START)
    x, y = rover.position
    return Drone((x + distance * math.cos(bearing), y + distance * math.sin(bearing), height), yaw)
