# SPDX-License-Identifier: Apache-2.0
"""Measurement: report of a vehicle of any protocol, in SI units and the axes of REP 103. Pure and immutable.

The `units` of a protocol convert its wire messages to measurements and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilted_drone import Motion, pull_of
from drone_bridge.motion.vectors import Triple


@dataclass(frozen=True, slots=True)
class Picture:
    """Image as pixels: red, green and blue, a byte each, row by row."""

    width: int
    height: int
    rgb8: bytes


@dataclass(frozen=True, slots=True)
class Measurement:
    """Report of a vehicle. Fields that it does not report are None. An empty report is a sign of life."""

    position: Triple | None = None
    """Position in the frame odom, m."""
    yaw: float | None = None
    """Heading of the body in odom, rad."""
    velocity: BodyVelocity | None = None
    """Velocity along and about level axes with the body's heading."""
    voltage: float | None = None
    """Voltage of the battery, V."""
    charge: float | None = None
    """Charge of the battery, 0 to 1."""
    height: float | None = None
    """Height above the ground, m."""
    image: bytes | Picture | None = None
    """Image: a JPEG, or pixels."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Messages of the robot's own `topics`, by name. Stamps are set, and so are empty frames."""
    roll: float | None = None
    """Roll of the body, rad; positive lowers the right side."""
    pitch: float | None = None
    """Pitch of the body, rad; positive lowers the nose."""
    rates: Triple | None = None
    """Angular velocity about the body's axes, rad/s."""
    acceleration: Triple | None = None
    """Specific force along the body's axes, m/s^2: +9.81 along z at rest."""
    climb: float | None = None
    """Vertical velocity by a sensor that is better than that of `velocity`, m/s."""
    is_flying: bool | None = None
    """Whether the vehicle is in the air and follows commands."""
    is_charging: bool | None = None
    """Whether the battery is on a charger."""
    scan: tuple[float, ...] | None = None
    """Distances along the rays of a turn of a lidar, m, from its first ray to the left. inf: nothing within reach."""
    imu_yaw: float | None = None
    """Heading of an IMU that drifts apart from `yaw`, rad, for `imu/data`."""
    contacts: tuple[Triple, ...] | None = None
    """Places on the body at which a bumper is pressed or a cliff is found, along its axes, m. Empty: nowhere."""
    disobeys: str = ""
    """Why the vehicle does not follow commands now, such as "a wheel has dropped", if it reports that. The bridge holds
    it, and greets it again when a person resumes it. Empty: it follows them."""
    time_s: float | None = None
    """Time by the vehicle's own clock, s."""

    @property
    def motion(self) -> Motion | None:
        """Feedback of a drone that is steered by tilt; None without velocity, heading or height."""
        if self.velocity is None or self.yaw is None or self.height is None:
            return None
        pull = None if self.roll is None or self.pitch is None else pull_of(self.roll, self.pitch)
        return Motion(self.velocity.forward, self.velocity.left, self.height, self.yaw, pull)

    @property
    def level_velocity(self) -> Triple | None:
        """Velocity forward, left and up, m/s, the latter by the better sensor; None without velocity."""
        if self.velocity is None:
            return None
        return self.velocity.forward, self.velocity.left, self.velocity.up if self.climb is None else self.climb
