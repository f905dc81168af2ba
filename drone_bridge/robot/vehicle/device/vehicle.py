# SPDX-License-Identifier: Apache-2.0
"""RobotVehicle: interface of a drivable robot and its subsystems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from drone_bridge.robot import codec

TRACKS = "tracks"  # default names of subsystems
HEADLIGHT = "headlight"


@dataclass(frozen=True, slots=True)
class DrivenSubsystem:
    """A subsystem that one driver at a time can bind. Its id is its index among the vehicle's subsystems."""

    type: codec.SubsystemType
    name: str
    motors: tuple[codec.MotorSensors, codec.MotorSensors] | None = None  # left and right, of a skid steer
    is_available: bool = True  # False: binds are refused
    other_driver: str = ""  # name of a driver elsewhere that holds it


class RobotVehicle(Protocol):
    """A robot. Numbers are ids of subsystems."""

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        """Subsystems that can be bound."""

    def drive(self, left: int, right: int) -> None:
        """Set the motors of all skid steers, each from -FULL_SPEED to FULL_SPEED."""

    def stop(self) -> None:
        """Stop the motors of all skid steers."""

    def light(self, number: int, is_on: bool) -> None:
        """Switch a light."""

    def sensors(self) -> Sequence[codec.Sensor]:
        """Return all sensors with their current values. None: unknown."""
