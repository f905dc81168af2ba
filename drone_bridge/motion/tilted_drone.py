# SPDX-License-Identifier: Apache-2.0
"""TiltedDrone: model of a tilt-controlled multirotor; its commands (shares) and measurements."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from drone_bridge.motion.body_velocity import BodyVelocity

GRAVITY = 9.81  # m/s^2
#: Largest plausible tilt of a flying drone, rad.
FARTHEST_TILT = 1.3


class Shares(NamedTuple):
    """Command of a drone: -1 to 1 of its full deflections, with the signs of REP 103."""

    thrust: float = 0.0  # positive climbs
    pitch: float = 0.0  # positive lowers the nose and flies forward
    roll: float = 0.0  # positive banks right
    yaw: float = 0.0  # positive turns left


class Motion(NamedTuple):
    """Measurement of a drone's own motion at one time."""

    forward: float  # m/s, levelled
    left: float  # m/s, levelled
    height: float  # m
    yaw: float  # rad, positive to the left
    pull: complex | None = None  # acceleration by tilt, forward + j left, m/s^2; see `pull_of`


@dataclass(frozen=True, slots=True)
class TiltedDrone:
    """Full deflections and dynamics of a drone."""

    max_tilt: float  # rad
    max_climb: float  # m/s
    max_yaw_rate: float  # rad/s
    drag: float = 0.4  # 1/s, deceleration per speed
    tilt_lag: float = 0.2  # s, including the link
    climb_lag: float = 0.25  # s

    @property
    def max_speed(self) -> float:
        """Largest level speed at full tilt, m/s."""
        return GRAVITY * math.tan(self.max_tilt) / self.drag if self.drag else math.inf

    def within_maxima(self, command: BodyVelocity | Shares) -> BodyVelocity | Shares:
        """Clamp a command to full deflections. The horizontal speed is not clamped: it depends on drag."""
        if isinstance(command, Shares):
            return Shares(*(_clamped(share, 1.0) for share in command))
        up, turn = _clamped(command.up, self.max_climb), _clamped(command.turn, self.max_yaw_rate)
        return command if (up, turn) == (command.up, command.turn) else replace(command, up=up, turn=turn)

    def climbing(self, speed: float) -> Shares:
        """Return the level command to climb at a speed, m/s, without feedback. A negative one sinks."""
        return Shares(thrust=_clamped(speed / self.max_climb, 1.0))


def _clamped(value: float, most: float) -> float:
    return min(max(value, -most), most)  # NaN is kept, so that neutral is sent instead


def pull_of(roll: float, pitch: float) -> complex:
    """Return the horizontal acceleration by tilt (rad, REP 103) in level flight: forward + j left, m/s^2."""
    roll = max(-FARTHEST_TILT, min(FARTHEST_TILT, roll))
    pitch = max(-FARTHEST_TILT, min(FARTHEST_TILT, pitch))
    return GRAVITY * complex(math.tan(pitch), -math.tan(roll))


def direction_of(yaw: float) -> complex:
    """Return the direction of a heading, rad, as a unit vector x + jy."""
    return complex(math.cos(yaw), math.sin(yaw))
