# SPDX-License-Identifier: Apache-2.0
"""Protocol 1, as the LEGO NXT adapters speak it and robotd did before 2017; see docs/robot.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from drone_bridge.robot.codec import (
    BindFailure,
    BindSuccess,
    FromDriver,
    LogMessage,
    RegisterDriver,
    Sensor,
    SensorInfo,
    SensorLayout,
    SensorReading,
    SensorType,
    SensorUpdate,
    Subsystem,
    SubsystemInfo,
)
from drone_bridge.robot.device.control import Control
from drone_bridge.robot.device.drivers import Driver, Instant


@dataclass(slots=True)
class Protocol1Control(Control):
    """Lists batteries only, sends all their values periodically, and both lists unasked when one has changed.

    There is no firmware (0x09), and binds are not announced (0x06).
    """

    readings_period_s: ClassVar[float | None] = 0.25

    _told: tuple[object, ...] | None = None  # what the lists contained that were sent last

    def handle(self, driver: Driver, packet: FromDriver, now: Instant) -> None:
        """Handle a packet. Raises HangUpError."""
        Control.handle(self, driver, packet, now)
        if isinstance(packet, RegisterDriver):
            driver.send(LogMessage(f"Hello, {driver.name}"))

    def _query(self, driver: Driver) -> None:
        if self._told is None:
            self._told = self._contents()
        driver.send(self._subsystem_info())
        driver.send(self._sensor_info())

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if driver.name is None or not self._is_free(number, driver):
            driver.send(BindFailure(number))
            return
        self._owners[number] = driver
        driver.send(BindSuccess(number))
        self.log(f"{driver} attempted to bind {self.vehicle.subsystems[number].name}", now)

    def _release(self, number: int, driver: Driver, now: Instant) -> None:
        del self._owners[number]
        self.report(f"{driver} has unbound subsystem {number}")

    def send_readings(self, readings: Sequence[SensorReading] = ()) -> None:
        """Send the values of all batteries: nothing but their order tells whose they are."""
        del readings
        if self._told not in (None, contents := self._contents()):
            self._told = contents
            for driver in tuple(self.drivers):
                self._query(driver)
        if batteries := self._batteries():
            values = [SensorReading(number, battery.value or 0) for number, battery in enumerate(batteries)]
            self._broadcast(SensorUpdate(tuple(values), has_ids=False))

    def log(self, text: str, now: Instant) -> None:
        """Log a line locally, and to every driver without the time."""
        del now
        self.report(text)
        self.send_log(text)

    def _contents(self) -> tuple[object, ...]:
        """Return what makes a list another one."""
        batteries = [(battery.name, battery.full_voltage_mv) for battery in self._batteries()]
        return batteries, [(subsystem.type, subsystem.name) for subsystem in self.vehicle.subsystems]

    def _batteries(self) -> list[Sensor]:
        """Return those whose voltage is known: the layout has nothing that stands for an unknown one."""
        return [s for s in self.vehicle.sensors() if s.type == SensorType.BATTERY and s.value is not None]

    def _subsystem_info(self) -> SubsystemInfo:
        return SubsystemInfo(
            tuple(
                Subsystem(subsystem.type, subsystem.name, self._holder_name(number))
                for number, subsystem in enumerate(self.vehicle.subsystems)
            )
        )

    def _sensor_info(self) -> SensorInfo:
        batteries = tuple(self._batteries())
        # Nothing on the wire tells the layout of an empty list, so it is that of the document.
        return SensorInfo(batteries, SensorLayout.PROTOCOL_1 if batteries else SensorLayout.DOCUMENT)
