# SPDX-License-Identifier: Apache-2.0
"""ArDroneFlight: dynamics of an emulated AR.Drone.

World and body have the axes of REP 103: x forward (at the start), y left, z up, yaw + to the left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ar_drone.flight_state import FlightState
from drone_bridge.motion.matrices import Matrix, Triple, Vector, rotation_from_angles
from drone_bridge.motion.wind import Wind

GRAVITY = 9.81  # m/s^2
# Time constants of the body's first-order response to commands, s.
TILT_LAG_S = 0.15
YAW_LAG_S = 0.1
CLIMB_LAG_S = 0.25
# Position hold of hover: tilt acts like a spring and a damper. Critical damping is 2 * sqrt(spring).
HOVER_SPRING = 1.0  # 1/s^2
HOVER_DAMPER = 2.0  # 1/s
HOVER_SLOW = 0.3  # m/s: below this speed hover holds the current position, above it hover only brakes
TAKE_OFF_HEIGHT = 1.0  # m
TAKE_OFF_SPEED = 0.5  # m/s
APPROACH = 2.0  # 1/s: climb rate per metre below the target height
LANDING_SPEED = 0.4  # m/s
LOWEST_FLIGHT = 0.1  # m: a lower height needs a landing

COLUMNS = ("time", "phase", "x", "y", "z", "yaw", "pitch", "roll", "vx", "vy", "vz")


class FlightPhase(str, Enum):
    """The phases of a flight."""

    LANDED = "landed"
    TAKING_OFF = "taking off"
    FLYING = "flying"
    LANDING = "landing"
    EMERGENCY = "emergency"  # motors off until reset is pressed on the ground


#: State in navdata, by phase.
STATES = {
    FlightPhase.LANDED: FlightState.LANDED,
    FlightPhase.TAKING_OFF: FlightState.TAKING_OFF,
    FlightPhase.FLYING: FlightState.FLYING,
    FlightPhase.LANDING: FlightState.LANDING,
    FlightPhase.EMERGENCY: FlightState.DEFAULT,
}


class View(NamedTuple):
    """Pose from which a camera sees, and its state."""

    is_down: bool  # the downward camera is chosen
    position: Vector
    rotation: Matrix
    is_stopped: bool  # by an emergency


class ArDroneSteering(Protocol):
    """Command of a drone: hover, or shares of its full deflections, -1 to 1."""

    @property
    def hover(self) -> bool:
        """Whether it brakes, and then holds its position; the shares are ignored then."""

    @property
    def roll(self) -> float:
        """Positive goes right."""

    @property
    def pitch(self) -> float:
        """Positive goes backward."""

    @property
    def yaw(self) -> float:
        """Positive turns right."""

    @property
    def gas(self) -> float:
        """Positive climbs."""


@dataclass(frozen=True, slots=True)
class Sticks:
    """Command by its values; without any, hover."""

    hover: bool = True
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    gas: float = 0.0


#: Steps of the simulation per second.
STEP_RATE = 100.0
DRAG = 0.4  # 1/s: deceleration per unit of air speed, in any direction
CEILING = 3.0  # m


class ArDroneFlight:
    """Drone, initially on the ground."""

    def __init__(self, gusts: float = 0.0, seed: int = 0) -> None:
        """`gusts` is their standard deviation per axis, m/s. They are reproducible with the seed."""
        self.time = 0.0  # s
        self.phase = FlightPhase.LANDED
        self.position = np.zeros(3)  # m
        self.velocity = np.zeros(3)  # m/s
        self.roll = self.pitch = self.yaw = 0.0  # rad: + banks right, + lowers the nose, + turns left
        self.yaw_rate = 0.0  # rad/s
        self.flown_s = 0.0  # with motors on
        # Settings of the drone.
        self.max_tilt, self.max_yaw_rate = AR_DRONE.max_tilt, AR_DRONE.max_yaw_rate  # rad, rad/s
        self.max_climb = AR_DRONE.max_climb  # m/s
        self.ceiling = CEILING  # m
        #: Error of what counts as level, rad: roll and pitch. It makes the drone drift unless it hovers.
        self.level_error = (0.0, 0.0)
        self._wind = Wind((0.0, 0.0, 0.0), gusts, seed=seed)
        self._controls: ArDroneSteering = Sticks()
        self._place: Triple | None = None  # position that hover holds, m

    @property
    def height(self) -> float:
        """Height above the ground, m."""
        return float(self.position[2])

    @property
    def rotation(self) -> Matrix:
        """Rotation from the body frame to the world frame."""
        return rotation_from_angles(self.roll, self.pitch, self.yaw)

    def view(self, is_down: bool, is_stopped: bool = False) -> View:
        """Return the view of one of the cameras."""
        return View(is_down, self.position.copy(), self.rotation, is_stopped)

    @property
    def is_hovering(self) -> bool:
        """Whether the drone holds its position."""
        return self.phase is FlightPhase.FLYING and self._controls.hover

    @property
    def is_steered(self) -> bool:
        """Whether the drone follows shares of its deflections."""
        return self.phase is FlightPhase.FLYING and not self._controls.hover

    @property
    def is_flying(self) -> bool:
        """Whether the motors carry the drone, which includes the landing."""
        return self.phase in (FlightPhase.TAKING_OFF, FlightPhase.FLYING, FlightPhase.LANDING)

    def steer(self, controls: ArDroneSteering) -> None:
        self._controls = controls

    def take_off(self) -> None:
        """Take off; no effect in the air or in an emergency."""
        if self.phase in (FlightPhase.LANDED, FlightPhase.LANDING):
            self.phase, self._place = FlightPhase.TAKING_OFF, None

    def land(self) -> None:
        if self.is_flying:
            self.phase, self._place = FlightPhase.LANDING, None

    def stop(self) -> None:
        """Stop the motors, also on the ground: an emergency."""
        self.phase = FlightPhase.EMERGENCY

    def reset(self) -> None:
        """Stop the motors in the air. On the ground, end an emergency."""
        if self.is_flying:
            self.phase = FlightPhase.EMERGENCY
        elif self.phase is FlightPhase.EMERGENCY and self.height <= 0:
            self.phase = FlightPhase.LANDED

    def advance(self, step: float) -> None:
        """Fly for `step` seconds under the current controls."""
        if self.is_flying:
            self.flown_s += step
            self._steer(step)
        else:
            self.yaw_rate = 0.0
        self._move(step)
        self.time += step
        self._wind.advance(step)
        self._change_phase()

    def row(self) -> list[float | str]:
        """Return the values of COLUMNS, in s, m, degrees and m/s."""
        angles = [math.degrees(angle) for angle in (self.yaw, self.pitch, self.roll)]
        return [self.time, self.phase.value, *self.position.tolist(), *angles, *self.velocity.tolist()]

    def describe(self) -> str:
        x, y, z = self.position
        return (
            f"t={self.time:.1f} s, {self.phase.value}, x={x:.2f} y={y:.2f} z={z:.2f} m, "
            f"speed {np.linalg.norm(self.velocity):.2f} m/s, yaw {math.degrees(self.yaw):.0f} degrees"
        )

    def _steer(self, step: float) -> None:
        """Move attitude and climb rate towards their targets."""
        controls = self._controls
        climb = {FlightPhase.TAKING_OFF: TAKE_OFF_SPEED, FlightPhase.LANDING: -LANDING_SPEED}.get(self.phase, 0.0)
        yaw_rate = 0.0
        if self.phase is not FlightPhase.FLYING or controls.hover:
            roll, pitch = self._tilt_of_hover()
        else:
            self._place = None
            roll, pitch = controls.roll * self.max_tilt, -controls.pitch * self.max_tilt
            roll, pitch = roll + self.level_error[0], pitch + self.level_error[1]
            yaw_rate = -controls.yaw * self.max_yaw_rate
            climb = controls.gas * self.max_climb
        if self.phase is FlightPhase.FLYING:
            lowest, highest = (APPROACH * (limit - self.height) for limit in (LOWEST_FLIGHT, self.ceiling))
            climb = max(lowest, min(highest, climb))
        elif self.phase is FlightPhase.TAKING_OFF:
            climb = min(climb, APPROACH * (TAKE_OFF_HEIGHT - self.height) + 0.1)
        self.roll += (roll - self.roll) * -math.expm1(-step / TILT_LAG_S)
        self.pitch += (pitch - self.pitch) * -math.expm1(-step / TILT_LAG_S)
        self.yaw_rate += (yaw_rate - self.yaw_rate) * -math.expm1(-step / YAW_LAG_S)
        self.velocity[2] += (climb - self.velocity[2]) * -math.expm1(-step / CLIMB_LAG_S)

    def _tilt_of_hover(self) -> tuple[float, float]:
        """Return the roll and pitch that brake, and then hold the position."""
        x, y, z = self.position.tolist()
        if self._place is None and np.linalg.norm(self.velocity[:2]) < HOVER_SLOW:
            self._place = (x, y, z)
        pull = -HOVER_DAMPER * self.velocity[:2]
        if self._place is not None:
            pull -= HOVER_SPRING * (self.position[:2] - self._place[:2])
        forward = math.cos(self.yaw) * pull[0] + math.sin(self.yaw) * pull[1]
        left = math.cos(self.yaw) * pull[1] - math.sin(self.yaw) * pull[0]
        roll, pitch = math.atan2(-left, GRAVITY), math.atan2(forward, GRAVITY)
        most = self.max_tilt
        return max(-most, min(most, roll)), max(-most, min(most, pitch))

    def _move(self, step: float) -> None:
        if self.phase is FlightPhase.LANDED:
            return
        wind = self._wind.velocity
        drag = -DRAG * (self.velocity - wind)
        if self.is_flying:
            # Thrust keeps the height, so tilt accelerates sideways by its tangent. Climbing is controlled separately.
            forward, left = GRAVITY * math.tan(self.pitch), -GRAVITY * math.tan(self.roll)
            pull = (
                math.cos(self.yaw) * forward - math.sin(self.yaw) * left,
                math.sin(self.yaw) * forward + math.cos(self.yaw) * left,
                -drag[2],
            )
        else:
            pull = (0.0, 0.0, -GRAVITY)
        self.velocity += (drag + pull) * step
        self.position += self.velocity * step
        self.yaw = math.remainder(self.yaw + self.yaw_rate * step, 2 * math.pi)

    def _change_phase(self) -> None:
        if self.phase is FlightPhase.TAKING_OFF and self.height >= TAKE_OFF_HEIGHT:
            self.phase, self._place = FlightPhase.FLYING, None
        if self.height <= 0 and self.phase is not FlightPhase.TAKING_OFF:
            self.position[2] = 0.0
            self.velocity[:] = 0.0
            self.roll = self.pitch = 0.0
            if self.phase is FlightPhase.LANDING:
                self.phase = FlightPhase.LANDED
