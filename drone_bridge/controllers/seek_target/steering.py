# SPDX-License-Identifier: Apache-2.0
"""How seek_target steers: by body rates and thrust, for a drone whose model is known, or by velocities, for any."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from drone_bridge.controllers.seek_target.target_estimator import TargetEstimator
from drone_bridge.motion.attitude_estimator import AttitudeEstimator, MeasuredAttitude
from drone_bridge.motion.flight_control import Command, DroneModel, FlightControl, Limits, hover
from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.quaternions import (
    Quaternion,
    euler_from_quaternion,
    multiplied,
    quaternion_from_vector,
    rotated,
)
from drone_bridge.motion.velocity_control import VelocityCommand

STANDARD_GRAVITY = 9.81  # m/s^2


@dataclass(frozen=True, slots=True)
class Gains:
    """What both ways of steering go by."""

    velocity: float  # 1/s
    attitude: float  # 1/s
    yaw: float  # 1/s
    limits: Limits


class Steering(Protocol):
    """Turns wanted accelerations into commands, and knows what they do."""

    gravity: float  # m/s^2
    decay: float  # of speed by drag, 1/s
    acceleration_noise: float  # m/s^2 for 1 s: how badly it knows

    def start(self, attitude: AttitudeEstimator, target: TargetEstimator) -> None:
        """Begin with these estimates, and forget the commands so far."""

    def advance(self, measured: MeasuredAttitude, step: float) -> tuple[Vector, float]:
        """Advance the attitude by a step, s; return the drone's acceleration in it, m/s^2, and its turn, rad."""

    def predicted(self, step: float) -> tuple[Quaternion, Vector, Vector]:
        """Return attitude, target position and velocity at the time the next command takes effect."""

    def command(
        self, attitude: Quaternion, velocity: Vector, acceleration: Vector, yaw_error: float, step: float
    ) -> Command | VelocityCommand:
        """Return the command for an acceleration, m/s^2, and a turn to the left, rad, and take it as given."""


# Which command is in force when answers arrive late.


LONGEST_DELAY = 4  # frames
DELAY_DEVIATION = 2e-3  # rad, of an angle after a step with the right command


class CommandsInFlight:
    """Estimates by how many frames commands are late, from their effect on the measured angles.

    In lockstep an answer acts on the step after its frame. When the bridge answers with what it has, each step is
    flown with a command some frames older; which one varies a little.
    """

    def __init__(self, neutral: Command) -> None:
        self._commands = deque([neutral] * (LONGEST_DELAY + 1), maxlen=LONGEST_DELAY + 1)
        # Of each delay; without evidence the shortest wins.
        self._costs: npt.NDArray[np.float64] = np.array([1e-3 * delay for delay in range(LONGEST_DELAY + 1)])

    @property
    def usual_delay(self) -> int:
        """How many frames late commands usually take effect."""
        return int(np.argmin(self._costs))

    @property
    def waiting(self) -> list[Command]:
        """Commands that take effect before the next one, in order."""
        delay = self.usual_delay
        return list(self._commands)[len(self._commands) - delay :] if delay else []

    def add(self, command: Command) -> None:
        """Add the answer to the newest frame."""
        self._commands.append(command)

    def acted(self, attitude: AttitudeEstimator, measured: MeasuredAttitude, step: float) -> Command:
        """Return the command of the last step, given the attitude before and the angles after it."""
        costs: npt.NDArray[np.float64] = np.zeros(LONGEST_DELAY + 1)
        for delay in range(LONGEST_DELAY + 1):
            turned = attitude.turned(self._late_by(delay).rates, step)
            costs[delay] = sum(residual**2 for residual in attitude.residuals(measured, turned))
        costs = np.minimum(costs / DELAY_DEVIATION**2, 100.0)
        self._costs += 0.05 * (costs - costs.min() - self._costs * (np.ptp(costs) > 1))
        costs += 9.0 * (np.arange(LONGEST_DELAY + 1) != self.usual_delay)
        return self._late_by(int(np.argmin(costs)))

    def _late_by(self, delay: int) -> Command:
        return self._commands[-1 - delay]


class RateSteering:
    """Body rates and thrust."""

    acceleration_noise = 0.1

    def __init__(self, drone: DroneModel, gains: Gains) -> None:
        self._drone = drone
        self.gravity, self.decay = drone.gravity, drone.decay
        self._control = FlightControl(drone, gains.limits, gains.attitude, gains.yaw)

    def start(self, attitude: AttitudeEstimator, target: TargetEstimator) -> None:
        self._attitude, self._target = attitude, target
        self._in_flight = CommandsInFlight(hover(self._drone))

    def advance(self, measured: MeasuredAttitude, step: float) -> tuple[Vector, float]:
        command = self._in_flight.acted(self._attitude, measured, step)
        before = self._attitude.rotation[:, 2]
        self._attitude.predict(command.rates, step)
        self._attitude.correct(measured)
        up = (before + self._attitude.rotation[:, 2]) / 2
        return self._acceleration(command, up), abs(command.yaw_rate) * step

    def predicted(self, step: float) -> tuple[Quaternion, Vector, Vector]:
        attitude, position, velocity = self._attitude.attitude, self._target.position, self._target.velocity
        for command in self._in_flight.waiting:
            turn = quaternion_from_vector(*(rate * step for rate in command.rates))
            attitude = multiplied(attitude, turn)
            up = np.array(rotated(attitude, 0.0, 0.0, 1.0))
            acceleration = self._acceleration(command, up) + self._target.disturbance
            acceleration = acceleration - self.decay * velocity
            position = position - (velocity + acceleration * step / 2) * step
            velocity = velocity + acceleration * step
        return attitude, position, velocity

    def command(
        self, attitude: Quaternion, velocity: Vector, acceleration: Vector, yaw_error: float, step: float
    ) -> Command:
        gravity = np.array([0, 0, self.gravity])
        x, y, z = (acceleration + gravity + self.decay * velocity - self._target.disturbance).tolist()
        command = self._control.command(attitude, (x, y, z), yaw_error, step, self._attitude.drift)
        self._in_flight.add(command)
        return command

    def _acceleration(self, command: Command, up: Vector) -> Vector:
        acceleration: Vector = command.thrust / self._drone.mass * up - np.array([0, 0, self.gravity])
        return acceleration


LAG = 0.35  # s, with which a vehicle follows velocities: drones usually 0.2 to 0.5


class VelocitySteering:
    """Velocities, for a vehicle that holds them by itself: it follows them with some lag, and nothing else is known."""

    gravity, decay = STANDARD_GRAVITY, 0.0
    acceleration_noise = 1.5

    def __init__(self, gains: Gains) -> None:
        self._gains = gains

    def start(self, attitude: AttitudeEstimator, target: TargetEstimator) -> None:
        self._attitude, self._target = attitude, target
        self._wanted: Vector = np.zeros(3)
        self._yaw_rate = 0.0

    def advance(self, measured: MeasuredAttitude, step: float) -> tuple[Vector, float]:
        before = _yaw(self._attitude.attitude)
        self._attitude.predict((0.0, 0.0, self._yaw_rate), step)
        self._attitude.correct(measured)
        turned = abs(math.remainder(_yaw(self._attitude.attitude) - before, math.tau))
        return (self._wanted - self._target.velocity) * (-math.expm1(-step / LAG) / step), turned

    def predicted(self, step: float) -> tuple[Quaternion, Vector, Vector]:
        """Return what is estimated: how much later a command acts is part of the lag."""
        return self._attitude.attitude, self._target.position, self._target.velocity

    def command(
        self, attitude: Quaternion, velocity: Vector, acceleration: Vector, yaw_error: float, step: float
    ) -> VelocityCommand:
        """Lead the velocity by what the vehicle lags behind; it deals with disturbances by itself."""
        self._wanted = velocity + acceleration / self._gains.velocity
        most = self._gains.limits.max_yaw_rate
        self._yaw_rate = max(-most, min(most, self._gains.yaw * yaw_error))
        yaw = _yaw(attitude)
        cosine, sine = math.cos(yaw), math.sin(yaw)
        x, y, z = self._wanted.tolist()
        return VelocityCommand(cosine * x + sine * y, cosine * y - sine * x, z, self._yaw_rate)


def _yaw(attitude: Quaternion) -> float:
    _, _, yaw = euler_from_quaternion(attitude)
    return yaw
