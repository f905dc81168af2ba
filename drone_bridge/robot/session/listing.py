# SPDX-License-Identifier: Apache-2.0
"""Listing: the subsystems and sensors of a robot, as its drivers see them."""

from dataclasses import dataclass

from drone_bridge.robot import codec
from drone_bridge.robot.device.vehicle import DrivenSubsystem


@dataclass(frozen=True, slots=True)
class Listing:
    """The subsystems and sensors of a robot; their numbers are their ids."""

    subsystems: tuple[DrivenSubsystem, ...] = ()
    sensors: tuple[codec.Sensor, ...] = ()
    """Without values."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Everything but who holds what; if it changes, drivers face another robot."""
        return tuple((s.type, s.name, s.motors) for s in self.subsystems), self.sensors
