# SPDX-License-Identifier: Apache-2.0
"""The robot's behaviour as that of robotd 1.2, which differs from the document; see docs/robot.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from drone_bridge.emulators.robot.control import MAX_DRIVERS, NAMES, Control, Driver, HangUpError
from drone_bridge.programs.program import say
from drone_bridge.protocols.robot import (
    PROTOCOL_VERSION,
    BindFailure,
    BindSuccess,
    FirmwareInfo,
    KeepAlive,
    LightUpdate,
    Sensor,
    SensorInfo,
    SensorLayout,
    SkidSteerUpdate,
    SubsystemBound,
)

OLDEST_KEEP_ALIVE_S: Final = 2.0  # the motors are stopped for one that is older, by the robot's own clock


@dataclass(slots=True)
class RobotdControl(Control):
    """Announces no release, stops no motors but for old keep-alives, and never forgets a driver who has gone.

    The list of drivers grows only. To announce a bind it writes to all of them, after ownership was noted: a closed
    connection among them fails the bind and ends the binder's connection, and whoever tried stays the owner forever.
    """

    _first_gone: int | None = None  # in order of connecting; an announcement gets no further
    _granted: dict[Driver, set[int]] = field(default_factory=dict)  # what each driver has ever been granted
    _misread: set[Driver] = field(default_factory=set)

    def handle(self, driver: Driver, packet: object, now_s: float, clock_ms: int) -> None:
        """Handle a packet. Raises HangUpError."""
        if driver in self._misread:
            driver.last_heard_s = now_s
            return
        Control.handle(self, driver, packet, now_s, clock_ms)  # type: ignore[arg-type]

    def leave(self, driver: Driver) -> None:
        """Free, without a word, all that the driver was ever granted, whoever has it now. The motors run on."""
        self.drivers.remove(driver)
        self._misread.discard(driver)
        self._first_gone = driver.order if self._first_gone is None else min(driver.order, self._first_gone)
        self._log(f"[{driver}] lost connection")
        for number in self._granted.pop(driver, ()):
            self._owners[number] = None

    def look_for_silence(self, now_s: float, allowed_s: float) -> None:
        """Drop nobody, unless no more drivers can be served."""
        if len(self.drivers) >= MAX_DRIVERS:
            Control.look_for_silence(self, now_s, allowed_s)

    def update_sensors(self) -> None:
        """Send nothing: robotd never sends readings."""

    def _keep_alive(self, driver: Driver, packet: KeepAlive, clock_ms: int) -> None:
        age_s = (clock_ms - packet.time_ms) / 1000
        if age_s > OLDEST_KEEP_ALIVE_S:
            for number in self._granted.get(driver, ()):
                if self._is_skid_steer(number):
                    self._log(f"{{{NAMES[self.subsystem_types[number]]}}} safe mode")
                    self._stop(f"the keep-alive of {driver} is {age_s:.1f} s old")
        driver.send(packet)

    def _query(self, driver: Driver) -> None:
        if any(owner and owner.name is None for owner in self._owners):
            raise HangUpError("it queries, and a driver without a name has a subsystem")
        Control._query(self, driver)

    def _bind(self, driver: Driver, number: int) -> None:
        self._look_up(number)
        if self._owners[number] is not None:
            driver.send(BindFailure(number))
            return
        self._owners[number] = driver
        if driver.name is None:
            raise HangUpError("it binds without having registered")
        for other in tuple(self.drivers):  # in order of connecting
            if self._first_gone is not None and other.order > self._first_gone:
                break
            other.send(SubsystemBound(number, driver.name))
        if self._first_gone is not None:
            self._log(f"[{driver}] #<IOError: closed stream>")
            raise HangUpError("it binds after another driver has gone")
        self._granted.setdefault(driver, set()).add(number)
        self._log(f"[{driver}] bound subsystem {number}")
        driver.send(BindSuccess(number))

    def _unbind(self, driver: Driver, number: int) -> None:
        self._look_up(number)
        if self._owners[number] is driver:
            self._owners[number] = None
            say(f"{driver} has unbound subsystem {number}")

    def _update(self, driver: Driver, packet: SkidSteerUpdate | LightUpdate) -> None:
        self._look_up(packet.id)
        if self._owners[packet.id] is driver:
            Control._update(self, driver, packet)
        else:
            # What is left of such a packet is taken for the next one: nothing after it is understood.
            self._misread.add(driver)
            say(f"{driver} updates what it has not bound, and is not understood any more")

    def _look_up(self, number: int) -> None:
        if number >= len(self._owners):
            raise HangUpError(f"there is no subsystem {number}")

    def _firmware(self) -> FirmwareInfo:
        return FirmwareInfo("robotd", "1.2", PROTOCOL_VERSION)

    def _sensor_info(self) -> SensorInfo:
        full_voltage_mv = 1000 * round(self.vehicle.chassis.full_voltage)
        return SensorInfo(
            tuple(
                Sensor(sensor.type, sensor.name, full_voltage_mv=sensor.full_voltage_mv and full_voltage_mv)
                for sensor in self._sensors()
            ),
            SensorLayout.ROBOTD_1_2,
        )
