# SPDX-License-Identifier: Apache-2.0
"""DroneState: motion of the testbed's drone: one thrust axis, gravity, drag.

World frame: right-handed, metres, y up; heading 0 looks along -z and has +x to its right.
Body frame: x right, y up, z backward, so that both frames agree at heading 0.
Angles are degrees, as in the protocol: heading + turns right, pitch + looks down, roll + banks right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.motion.matrices import Matrix, Triple, Vector, rotation_from_vector
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters

# Gauss-Legendre points in (0, 1). With 8 points, the integrals over one step are exact to rounding if the drone turns
# less than about half a revolution during the step.
_NODES, _WEIGHTS = (np.array(values) / 2 for values in np.polynomial.legendre.leggauss(8))
_NODES += 0.5
_STILL = np.zeros(3)


def degrees_per_unit(unit: AngleUnit) -> float:
    """Return the number of degrees in one unit of angle on the wire."""
    return 180 / unit.half_turn


@dataclass(frozen=True, slots=True)
class Airframe:
    """Constants of the flight dynamics."""

    mass: float = 1.0  # kg
    gravity: float = 9.81  # m/s^2, positive downwards
    drag: float = 0.2  # kg/s: drag force per unit of air speed

    @classmethod
    def from_constants(cls, constants: Constants) -> Airframe:
        """Return the airframe that the constants describe."""
        return cls(constants.weight, abs(constants.gravity), constants.drag)


@dataclass(frozen=True, slots=True)
class DroneInput:
    """Body rates, which act immediately, and thrust along the body's up axis.

    Values are not clamped. Known testbeds do not clamp them either.
    """

    pitch_rate: float = 0.0  # degrees/s, + turns the nose down
    roll_rate: float = 0.0  # degrees/s, + banks right
    yaw_rate: float = 0.0  # degrees/s, + turns right
    thrust: float = 0.0  # N

    @classmethod
    def from_answer(cls, answer: MotionParameters, unit: AngleUnit) -> DroneInput:
        """Convert a reply from the unit of the wire."""
        scale = degrees_per_unit(unit)
        return cls(answer.pitch_rate * scale, answer.roll_rate * scale, answer.yaw_rate * scale, answer.thrust)


@dataclass(frozen=True, slots=True)
class DroneState:
    """The drone's pose and velocity."""

    position: Vector  # midpoint between the pinholes in the world frame, m
    velocity: Vector  # in the world frame, m/s
    rotation: Matrix  # rotates vectors from the body frame to the world frame
    time: float = 0.0  # s since the start

    @classmethod
    def at_start(cls) -> DroneState:
        """Return the drone at rest and level at the origin, with heading 0."""
        return cls(np.zeros(3), np.zeros(3), np.eye(3))

    @property
    def angles(self) -> Triple:
        """Heading, pitch, roll in degrees."""
        return angles_of_testbed_rotation(self.rotation)

    def advance(
        self, airframe: Airframe, motion: DroneInput, wind: Vector, step: float, wind_rotation: Vector = _STILL
    ) -> DroneState:
        """Return the state after `step` seconds of constant rates, thrust and wind (m/s).

        The wind also rotates the drone, by `wind_rotation` in degrees/s about the world's axes, right-handed.

        m dv/dt = thrust * body up + m g down - drag (v - wind) is linear in v, so its exact solution is a convolution
        of the forces with exp(-drag t / m). It is evaluated while the attitude rotates during the step.
        """
        rates = -np.radians([motion.pitch_rate, motion.yaw_rate, motion.roll_rate])  # about body x, y, z
        rates = rates + np.radians(wind_rotation) @ self.rotation
        speed = math.sqrt(float(rates @ rates))
        axis = rates / speed if speed else np.array([0.0, 1.0, 0.0])

        angles = (speed * step * _NODES)[:, np.newaxis]
        body_up = np.array([0.0, 1.0, 0.0])
        along = axis * axis[1]
        across = np.array([-axis[2], 0.0, axis[0]])  # axis x body_up
        directions = (along + np.cos(angles) * (body_up - along) + np.sin(angles) * across) @ self.rotation.T
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
    """Return the distance travelled per unit of initial speed, if speed decays with the given rate in 1/s."""
    if not decay:
        return time
    moved: Vector = -np.expm1(-decay * time) / decay
    return moved


def _orthonormal(rotation: Matrix) -> Matrix:
    """Remove the rounding errors of one multiplication from a rotation (one Newton step)."""
    corrected: Matrix = rotation @ (1.5 * np.eye(3) - 0.5 * rotation.T @ rotation)
    return corrected


def angles_of_testbed_rotation(rotation: Matrix) -> Triple:
    """Return heading, pitch and roll in degrees: +-180, +-90, +-180.

    When the drone looks straight down or up, heading and roll share an axis. Roll is then 0.
    """
    right, up, forward = rotation[:, 0], rotation[:, 1], -rotation[:, 2]
    level = math.hypot(forward[0], forward[2])
    pitch = math.degrees(math.atan2(-forward[1], level))
    if level < 1e-9:
        return math.degrees(math.atan2(right[2], right[0])), pitch, 0.0
    heading = math.degrees(math.atan2(forward[0], -forward[2]))
    return heading, pitch, math.degrees(math.atan2(-right[1], up[1]))
