# SPDX-License-Identifier: Apache-2.0
"""What a session with a robot tells the node."""

from typing import Protocol

from drone_bridge.protocols.robot import FirmwareInfo, SensorInfo, SensorUpdate


class Listener(Protocol):
    """Who is told what the robot says."""

    def complain(self, count: str, sentence: str) -> None:
        """Something was not as it should be; `count` is its kind."""

    def inform(self, sentence: str) -> None:
        """Something has changed."""

    def subsystems_changed(self) -> None:
        """What there is, or who has it, is new."""

    def sensors_listed(self, info: SensorInfo) -> None:
        """What is measured is new."""

    def sensors_read(self, update: SensorUpdate) -> None:
        """Readings have come."""

    def robot_logged(self, text: str) -> None:
        """The robot says something to people."""

    def firmware_told(self, firmware: FirmwareInfo) -> None:
        """The robot has said what it runs."""

    def round_trip_measured(self, seconds: float) -> None:
        """A keep-alive has come back."""

    def settled(self) -> None:
        """Everything that was to be bound has been bound, or refused: the robot has proved to be of use."""
