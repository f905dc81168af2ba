# SPDX-License-Identifier: Apache-2.0
"""What a session with a robot reports to the node."""

from typing import Protocol

from drone_bridge.protocols.robot import FirmwareInfo, SensorInfo, SensorUpdate


class Listener(Protocol):
    """Receives what the robot says."""

    def complain(self, count: str, sentence: str) -> None:
        """Something was not as it should be; `count` is its kind."""

    def inform(self, sentence: str) -> None:
        """Something has changed."""

    def subsystems_changed(self) -> None:
        """The list of subsystems, or the driver of one of them, has changed."""

    def sensors_listed(self, info: SensorInfo) -> None:
        """The robot has listed its sensors."""

    def sensors_read(self, update: SensorUpdate) -> None:
        """Readings have come."""

    def robot_logged(self, text: str) -> None:
        """The robot has sent a line of its log."""

    def firmware_identified(self, firmware: FirmwareInfo) -> None:
        """The robot has identified its firmware."""

    def round_trip_measured(self, seconds: float) -> None:
        """A keep-alive has come back."""

    def settled(self) -> None:
        """Everything that was to be bound has been bound, or refused: the robot has proved to be of use."""
