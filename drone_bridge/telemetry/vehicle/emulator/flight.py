# SPDX-License-Identifier: Apache-2.0
"""FlyingDrone: flight dynamics of a drone commanded by thrust, tilt and turn rate, with drag and wind, without ground.

World and body have the axes of REP 103: x forward, y left, z up. Angles are radians: roll + banks right, pitch + lowers
the nose, yaw + turns left; the attitude is yaw about z, then pitch about the new y, then roll about the newest x.

In a command, thrust is a share of the margin around hover, pitch and roll are angles, and yaw is a rate in rad/s, each
with the sign of its angle. A command stays in force until the next one, because real receivers have no timeout.
"""

from __future__ import annotations

import math

import numpy as np

from drone_bridge.motion.matrices import Matrix, Triple, Vector, rotation_from_angles
from drone_bridge.telemetry.codec import DroneCommand

GRAVITY = 9.81  # m/s^2
#: Maximum thrust of the propellers, as a multiple of the drone's weight.
MAX_THRUST_TO_WEIGHT = 2.5
THRUST_MARGIN = 5.0  # m/s^2 up or down at a thrust of 1 or -1
THRUST_LAG_S = 0.1  # first order
ATTITUDE_FREQUENCY = 10.0  # rad/s: natural frequency of roll and pitch, second order
ATTITUDE_DAMPING = 0.8  # of 1, critical
YAW_LAG_S = 0.15  # first order, of the rate
HORIZONTAL_DRAG = 0.4  # 1/s: deceleration per unit of air speed
VERTICAL_DRAG = 2.0  # 1/s: propellers brake far more along their axis than the body does across it


class FlyingDrone:
    """Drone in the air. The caller calls `stand` while it is in contact with a surface."""

    def __init__(self, position: Triple, yaw: float = 0.0) -> None:
        """Start at rest in the air; `position` in m, `yaw` in rad."""
        self.position: Vector = np.array(position, dtype=float)  # m, world
        self.velocity: Vector = np.zeros(3)  # m/s, world
        self.acceleration: Vector = np.zeros(3)  # m/s^2, world, over the last step
        self.roll = self.pitch = 0.0  # rad
        self.yaw = yaw  # rad
        self.command = DroneCommand()
        self.thrust = 0.0  # current thrust of the motors, which lags the command
        self._roll_rate = self._pitch_rate = self._yaw_rate = 0.0  # rad/s, of these three angles

    @property
    def rotation(self) -> Matrix:
        """Rotation from the body frame to the world frame."""
        return rotation_from_angles(self.roll, self.pitch, self.yaw)

    @property
    def body_rates(self) -> Vector:
        """Angular velocity about the body's x, y and z, rad/s."""
        sr, cr, sp, cp = math.sin(self.roll), math.cos(self.roll), math.sin(self.pitch), math.cos(self.pitch)
        return np.array(
            [
                self._roll_rate - self._yaw_rate * sp,
                self._pitch_rate * cr + self._yaw_rate * sr * cp,
                self._yaw_rate * cr * cp - self._pitch_rate * sr,
            ]
        )

    def advance(self, step: float, wind: Vector) -> None:
        """Fly for `step` s, a few milliseconds, in air that moves with `wind` (m/s, world)."""
        self._turn(step)
        self._spin(self.command.thrust, step)
        # In floats: this runs 200 times per second, and NumPy is slower for three numbers.
        (sr, cr), (sp, cp), (sy, cy) = ((math.sin(each), math.cos(each)) for each in (self.roll, self.pitch, self.yaw))
        up = cp * cr
        # The flight controller compensates tilt with thrust to keep the lift.
        lift = (GRAVITY + THRUST_MARGIN * self.thrust) / max(up, 0.1)
        pull = min(lift, MAX_THRUST_TO_WEIGHT * GRAVITY)
        x, y, z = (self.velocity - wind).tolist()
        self.acceleration = np.array(
            [
                pull * (cy * sp * cr + sy * sr) - HORIZONTAL_DRAG * x,
                pull * (sy * sp * cr - cy * sr) - HORIZONTAL_DRAG * y,
                pull * up - VERTICAL_DRAG * z - GRAVITY,
            ]
        )
        self.velocity += self.acceleration * step
        self.position += self.velocity * step

    def stand(self, step: float, position: Vector, velocity: Vector) -> None:
        """Stand level on a moving surface for `step` s. The motors idle unless commanded to climb."""
        self._spin(max(self.command.thrust, 0.0), step)
        self.position = position.copy()
        self.velocity = velocity.copy()
        self.acceleration = np.zeros(3)
        self.roll = self.pitch = self._roll_rate = self._pitch_rate = self._yaw_rate = 0.0

    def _spin(self, thrust: float, step: float) -> None:
        self.thrust += (thrust - self.thrust) * -math.expm1(-step / THRUST_LAG_S)

    def _turn(self, step: float) -> None:
        command = self.command
        stiffness, damping = ATTITUDE_FREQUENCY**2, 2 * ATTITUDE_DAMPING * ATTITUDE_FREQUENCY
        self._roll_rate += (stiffness * (command.roll - self.roll) - damping * self._roll_rate) * step
        self._pitch_rate += (stiffness * (command.pitch - self.pitch) - damping * self._pitch_rate) * step
        self._yaw_rate += (command.yaw - self._yaw_rate) * -math.expm1(-step / YAW_LAG_S)
        self.roll += self._roll_rate * step
        self.pitch += self._pitch_rate * step
        self.yaw = math.remainder(self.yaw + self._yaw_rate * step, math.tau)
