# SPDX-License-Identifier: Apache-2.0
"""FlightControl: body rates and thrust for a wanted thrust vector."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

from drone_bridge.motion.matrices import Triple
from drone_bridge.motion.quaternions import Quaternion, rotated_back

LEAST_UPWARD_SHARE = 0.3  # of gravity: minimum upward thrust, since the drone can't steer without thrust


@dataclass(frozen=True, slots=True)
class DroneModel:
    """Drone properties as announced by the testbed, in SI units. Raises ValueError for a drone that can't fly."""

    mass: float  # kg
    gravity: float  # m/s^2, positive downwards
    drag: float  # kg/s, drag force per air speed
    max_thrust: float  # N
    max_roll_rate: float  # rad/s
    max_pitch_rate: float  # rad/s
    max_yaw_rate: float  # rad/s

    @classmethod
    def of(cls, properties: object) -> DroneModel:
        """Return the model for an object with properties of the same names, such as a DroneProperties message."""
        return cls(**{each.name: getattr(properties, each.name) for each in fields(cls)})

    def __post_init__(self) -> None:
        for name in ("mass", "gravity", "max_thrust"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be above 0, not {value}")
        for name in ("drag", "max_roll_rate", "max_pitch_rate", "max_yaw_rate"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be at least 0, not {value}")

    @property
    def decay(self) -> float:
        """Decay rate of the speed by drag, 1/s."""
        return self.drag / self.mass


class RatesAndThrust(NamedTuple):
    """Body rates about REP 103 axes in rad/s, and thrust along body z in N."""

    roll_rate: float  # about x: positive banks right
    pitch_rate: float  # about y: positive lowers the nose
    yaw_rate: float  # about z: positive turns left
    thrust: float

    @property
    def rates(self) -> Triple:
        """Body rates about x, y, z, rad/s."""
        return self.roll_rate, self.pitch_rate, self.yaw_rate

    @property
    def is_finite(self) -> bool:
        return all(map(math.isfinite, self))


def hover(drone: DroneModel) -> RatesAndThrust:
    """Return the command that keeps a level drone in place in calm air."""
    return RatesAndThrust(0.0, 0.0, 0.0, min(drone.mass * drone.gravity, drone.max_thrust))


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of the commands."""

    max_tilt: float  # rad
    max_turn_rate: float  # rad/s, about body x and y
    max_yaw_rate: float  # rad/s


class FlightControl:
    """Attitude controller: aligns the thrust vector with the wanted direction, and controls the heading.

    The body's z axis turns towards the wanted thrust direction along the shortest path, at a rate proportional to the
    angle. A rotation about z does not move that axis, so the heading is controlled separately.
    """

    def __init__(self, drone: DroneModel, limits: CommandLimits, attitude_gain: float, yaw_gain: float) -> None:
        """Gains in 1/s."""
        self._drone = drone
        self._limits = limits
        self._attitude_gain = attitude_gain
        self._yaw_gain = yaw_gain

    def command(
        self, attitude: Quaternion, specific_force: Triple, yaw_error: float, step: float, drift: Triple
    ) -> RatesAndThrust:
        """Return the command for a wanted thrust per mass (levelled frame, m/s^2) and a turn to the left, rad.

        `step` is the duration of the command, s. `drift` is the uncommanded rotation, rad/s about the levelled axes.
        """
        drone, limits = self._drone, self._limits
        x, y, z = rotated_back(attitude, *self._feasible(*specific_force))
        sideways = math.hypot(x, y)
        rate = _share(self._attitude_gain, step) * math.atan2(sideways, z)
        rate = min(rate, limits.max_turn_rate) / max(sideways, 1e-9)
        yaw_rate = _clamp(_share(self._yaw_gain, step) * yaw_error, limits.max_yaw_rate)
        drift_x, drift_y, drift_z = rotated_back(attitude, *drift)
        return RatesAndThrust(
            roll_rate=_clamp(-y * rate - drift_x, drone.max_roll_rate),
            pitch_rate=_clamp(x * rate - drift_y, drone.max_pitch_rate),
            yaw_rate=_clamp(yaw_rate - drift_z, drone.max_yaw_rate),
            thrust=min(max(drone.mass * z, 0.0), drone.max_thrust),
        )

    def yaw_turn(self, yaw_rate: float, step: float) -> float:
        """Return the `yaw_error` of `command`, rad, that results in a yaw rate, rad/s, during a step, s."""
        return yaw_rate / _share(self._yaw_gain, step)

    def _feasible(self, x: float, y: float, z: float) -> Triple:
        """Limit thrust and tilt. Height has priority over lateral acceleration."""
        strongest = self._drone.max_thrust / self._drone.mass
        upward = min(max(z, LEAST_UPWARD_SHARE * self._drone.gravity), strongest)
        allowed = min(upward * math.tan(self._limits.max_tilt), math.sqrt(max(strongest**2 - upward**2, 0.0)))
        share = min(1.0, allowed / max(math.hypot(x, y), 1e-9))
        return x * share, y * share, upward


def braking_profile(distance: float, gain: float, deceleration: float) -> tuple[float, float]:
    """Return the speed at a distance from the goal, and its decrease per metre, 1/s.

    Close to the goal the speed is proportional to the distance. Farther away it allows a stop by constant deceleration.
    """
    bend = deceleration / gain**2
    if distance < bend:
        return gain * distance, gain
    speed = math.sqrt(2 * deceleration * (distance - bend / 2))
    return speed, deceleration / speed


def _share(gain: float, step: float) -> float:
    """Return the discrete gain, 1/s, that has the effect of a continuous gain over one step."""
    return -math.expm1(-gain * step) / step


def _clamp(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)
