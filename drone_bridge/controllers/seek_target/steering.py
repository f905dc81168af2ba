# SPDX-License-Identifier: Apache-2.0
"""SeekSteering: converts accelerations to body rates and thrust, and predicts their effect despite latency."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from drone_bridge.controllers.seek_target.target_estimator import TargetEstimator
from drone_bridge.motion.attitude_estimator import AttitudeEstimator
from drone_bridge.motion.flight_control import DroneModel, FlightControl, RatesAndThrust, hover
from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.quaternions import MeasuredAttitude, Quaternion, multiplied, quaternion_from_vector, rotated

LONGEST_DELAY = 4  # frames
DELAY_DEVIATION = 2e-3  # rad, of a predicted angle with the right delay


class CommandsInFlight:
    """Estimator of the latency of commands, in frames, from their effect on the measured angles.

    In lockstep, a command acts on the step after its frame. Otherwise the bridge sends the latest command that it has,
    so that each step is flown with a command some frames older, which varies slightly.
    """

    def __init__(self, neutral: RatesAndThrust) -> None:
        self._commands = deque([neutral] * (LONGEST_DELAY + 1), maxlen=LONGEST_DELAY + 1)
        # Cost of each delay. Without evidence, the shortest one wins.
        self._costs: npt.NDArray[np.float64] = np.array([1e-3 * delay for delay in range(LONGEST_DELAY + 1)])

    @property
    def usual_delay(self) -> int:
        """Usual latency of commands, frames."""
        return int(np.argmin(self._costs))

    @property
    def waiting(self) -> list[RatesAndThrust]:
        """Pending commands, which take effect before the next one, in order."""
        delay = self.usual_delay
        return list(self._commands)[len(self._commands) - delay :] if delay else []

    def add(self, command: RatesAndThrust) -> None:
        """Add the command for the newest frame."""
        self._commands.append(command)

    def acted(self, attitude: AttitudeEstimator, measured: MeasuredAttitude, step: float) -> RatesAndThrust:
        """Return the command that acted in the last step, given the attitude before it and the angles after it."""
        costs: npt.NDArray[np.float64] = np.zeros(LONGEST_DELAY + 1)
        for delay in range(LONGEST_DELAY + 1):
            turned = attitude.attitude_after(self._late_by(delay).rates, step)
            costs[delay] = sum(residual**2 for residual in attitude.residuals(measured, turned))
        costs = np.minimum(costs / DELAY_DEVIATION**2, 100.0)
        self._costs += 0.05 * (costs - costs.min() - self._costs * (np.ptp(costs) > 1))
        costs += 9.0 * (np.arange(LONGEST_DELAY + 1) != self.usual_delay)
        return self._late_by(int(np.argmin(costs)))

    def _late_by(self, delay: int) -> RatesAndThrust:
        return self._commands[-1 - delay]


class SeekSteering:
    """Converts accelerations to commands, and predicts their effect."""

    def __init__(
        self, drone: DroneModel, control: FlightControl, attitude: AttitudeEstimator, target: TargetEstimator
    ) -> None:
        """Start at hover. The estimators are shared with the caller."""
        self._drone, self._control, self._attitude, self._target = drone, control, attitude, target
        self._in_flight = CommandsInFlight(hover(drone))

    def advance(self, measured: MeasuredAttitude, step: float) -> tuple[Vector, float]:
        """Advance the attitude by a step, s. Return the acceleration during it, m/s^2, and the yaw turned, rad."""
        command = self._in_flight.acted(self._attitude, measured, step)
        before = self._attitude.rotation[:, 2]
        self._attitude.predict(command.rates, step)
        self._attitude.correct(measured)
        up = (before + self._attitude.rotation[:, 2]) / 2
        return self._acceleration(command, up), abs(command.yaw_rate) * step

    def predicted(self, step: float) -> tuple[Quaternion, Vector, Vector]:
        """Predict attitude, target position and velocity for the time at which the next command takes effect."""
        attitude, position, velocity = self._attitude.attitude, self._target.position, self._target.velocity
        for command in self._in_flight.waiting:
            turn = quaternion_from_vector(*(rate * step for rate in command.rates))
            attitude = multiplied(attitude, turn)
            up = np.array(rotated(attitude, 0.0, 0.0, 1.0))
            acceleration = self._acceleration(command, up) + self._target.disturbance
            acceleration = acceleration - self._drone.decay * velocity
            position = position - (velocity + acceleration * step / 2) * step
            velocity = velocity + acceleration * step
        return attitude, position, velocity

    def command(
        self, attitude: Quaternion, velocity: Vector, acceleration: Vector, yaw_error: float, step: float
    ) -> RatesAndThrust:
        """Return the command for an acceleration, m/s^2, and a yaw error, rad to the left, and record it."""
        gravity = np.array([0, 0, self._drone.gravity])
        x, y, z = (acceleration + gravity + self._drone.decay * velocity - self._target.disturbance).tolist()
        command = self._control.command(attitude, (x, y, z), yaw_error, step, self._attitude.drift)
        self._in_flight.add(command)
        return command

    def _acceleration(self, command: RatesAndThrust, up: Vector) -> Vector:
        acceleration: Vector = command.thrust / self._drone.mass * up - np.array([0, 0, self._drone.gravity])
        return acceleration
