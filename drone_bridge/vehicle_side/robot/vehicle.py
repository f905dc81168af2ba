# SPDX-License-Identifier: Apache-2.0
"""What drivers drive, as the robot's side of the conversation sees it: simulated, or steered through ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from drone_bridge.protocols.robot import FULL_SPEED, MotorSensors, Sensor, SubsystemType

TRACKS: Final = "tracks"  # what a robot's subsystems are called unless somebody names them
HEADLIGHT: Final = "headlight"


@dataclass(frozen=True, slots=True)
class DrivenSubsystem:
    """Something that one driver at a time can bind. Its id is its place among the vehicle's subsystems."""

    type: SubsystemType
    name: str
    motors: tuple[MotorSensors, MotorSensors] | None = None  # of the left and the right side, of a skid steer
    can_be_had: bool = True  # False: whoever asks for it is refused
    elsewhere: str = ""  # who has it who is no driver of ours, if anybody


class Vehicle(Protocol):
    """A robot. The numbers are ids of subsystems of the fitting type."""

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        """What can be bound."""

    def drive(self, number: int, left: int, right: int) -> None:
        """Set the motors of a skid steer, each from -FULL_SPEED to FULL_SPEED."""

    def stop(self, number: int) -> None:
        """Stop the motors of a skid steer, whose driver has lost it or given it back, or is not heard."""

    def light(self, number: int, is_on: bool) -> None:
        """Switch a light."""

    def sensors(self) -> Sequence[Sensor]:
        """Return every sensor with its present value; None is a value that is not known."""


def clamped(speed: int) -> int:
    """Return a speed within what a motor can do: drivers send what they like."""
    return max(-FULL_SPEED, min(FULL_SPEED, speed))
