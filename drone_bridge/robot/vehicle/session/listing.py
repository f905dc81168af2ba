# SPDX-License-Identifier: Apache-2.0
"""Listing: subsystems and sensors of a robot, as shown to its drivers."""

from dataclasses import dataclass

from drone_bridge.robot import codec
from drone_bridge.robot.vehicle.device.vehicle import DrivenSubsystem


@dataclass(frozen=True, slots=True)
class Listing:
    """Subsystems and sensors of a robot. Their indices are their ids."""

    subsystems: tuple[DrivenSubsystem, ...] = ()
    sensors: tuple[codec.Sensor, ...] = ()
    """Sensors without values."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Contents without the holders of subsystems. If it changes, drivers face another robot."""
        return tuple((s.type, s.name, s.motors) for s in self.subsystems), self.sensors
