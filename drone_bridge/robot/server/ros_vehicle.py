# SPDX-License-Identifier: Apache-2.0
"""The robot in ROS as drivers control it. For the link's thread."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from drone_bridge.robot.codec import Sensor, SubsystemType
from drone_bridge.robot.device.vehicle import DrivenSubsystem
from drone_bridge.robot.server.drive_commands import DriveCommands
from drone_bridge.robot.server.listing import Listing
from drone_bridge.robot.server.values import SensorValues
from drone_bridge.robot.topics.translation import Speeds


class RosVehicle:
    """A Vehicle made of topics: commands are published, sensor values subscribed to."""

    def __init__(
        self,
        listing: Listing,
        values: SensorValues,
        commands: DriveCommands,
        switch_light: Callable[[int, bool], None],
        allowed_age_s: Callable[[], float],
    ) -> None:
        """`switch_light` takes the number of a subsystem; `allowed_age_s` is how long a value stays current."""
        self.listing = listing
        self._values, self._commands = values, commands
        self._switch_light, self._allowed_age_s = switch_light, allowed_age_s

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        """See Vehicle."""
        return self.listing.subsystems

    def drive(self, number: int, left: int, right: int) -> None:
        """Publish a command. All skid steers share one topic, as in robot_bridge."""
        del number
        self._commands.drive(Speeds(left, right), time.monotonic())

    def stop(self, number: int) -> None:
        """Publish a stop, if the robot moves."""
        del number
        self._commands.stop(time.monotonic())

    def light(self, number: int, is_on: bool) -> None:
        """Publish the state of a light."""
        if self.listing.subsystems[number].type == SubsystemType.LIGHTS:
            self._switch_light(number, is_on)

    def sensors(self) -> list[Sensor]:
        """Return every sensor, with its value if that is fresh."""
        now_s, allowed_s = time.monotonic(), self._allowed_age_s()
        return [
            replace(source.sensor, value=self._values.current(number, now_s, allowed_s))
            for number, source in enumerate(self.listing.sources)
        ]
