# SPDX-License-Identifier: Apache-2.0
"""TiltedDrone: a drone that is steered by shares of its full tilt, climb and turn rate; and what it gets and tells."""

from dataclasses import dataclass
from typing import NamedTuple


class Velocity(NamedTuple):
    """A velocity in the levelled frame with the drone's heading, and a turn rate."""

    forward: float = 0.0  # m/s
    left: float = 0.0  # m/s
    up: float = 0.0  # m/s
    yaw_rate: float = 0.0  # rad/s, positive turns left


class Shares(NamedTuple):
    """What a drone is commanded, -1 to 1 of its full deflections, with the signs of REP 103."""

    thrust: float = 0.0  # positive climbs
    pitch: float = 0.0  # positive lowers the nose and flies forward
    roll: float = 0.0  # positive banks right
    yaw: float = 0.0  # positive turns left


class Motion(NamedTuple):
    """What a drone measures of itself at one moment."""

    forward: float  # m/s, levelled
    left: float  # m/s, levelled
    up: float | None  # m/s
    height: float  # m
    yaw: float  # rad, positive to the left


@dataclass(frozen=True, slots=True)
class TiltedDrone:
    """What full deflections are, and how the drone comes to them."""

    max_tilt: float  # rad
    max_climb: float  # m/s
    max_yaw_rate: float  # rad/s
    drag: float = 0.4  # 1/s, deceleration per speed
    tilt_lag: float = 0.2  # s, and of the link
    climb_lag: float = 0.25  # s
