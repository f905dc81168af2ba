# SPDX-License-Identifier: Apache-2.0
"""Listener: what a driver's conversation with a robot tells its session."""

from typing import Protocol

from drone_bridge.robot import codec


class Listener(Protocol):
    """Receives the events of a session."""

    def count_and_warn(self, count: str, sentence: str) -> None:
        """A problem occurred; `count` is its kind."""

    def inform(self, sentence: str) -> None:
        """An expected change occurred."""

    def subsystems_changed(self) -> None:
        """The list of subsystems, or the driver of one, has changed."""

    def sensors_listed(self, info: codec.SensorInfo) -> None:
        """The robot has listed its sensors."""

    def sensors_read(self, update: codec.SensorUpdate) -> None:
        """Readings were received."""

    def robot_logged(self, text: str) -> None:
        """The robot has sent a log line."""

    def firmware_identified(self, firmware: codec.FirmwareInfo) -> None:
        """The robot has identified its firmware."""

    def round_trip_measured(self, seconds: float) -> None:
        """A keep-alive was answered."""

    def settled(self) -> None:
        """Every bind was answered: the robot has proved useful."""
