# SPDX-License-Identifier: Apache-2.0
"""RobotdControl and Protocol1Control: how programs behave where they differ from the document; see docs/robot.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from drone_bridge.robot import codec
from drone_bridge.robot.device.control import MAX_DRIVERS, Control
from drone_bridge.robot.device.drivers import Driver, HangUpError, Instant

OLDEST_KEEP_ALIVE_S = 2.0  # by the robot's clock; the motors are stopped for an older one
ROBOTD = codec.FirmwareInfo("robotd", "1.2", codec.PROTOCOL_VERSION)
_OF_A_SUBSYSTEM = codec.BindSubsystem | codec.UnbindSubsystem | codec.Update
_MILLIVOLTS_PER_VOLT = 1000


class Dialect(str, Enum):
    """The variant of the protocol that drivers are served."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # as that program behaves
    PROTOCOL_1 = "protocol-1"  # as the LEGO NXT adapters behave


@dataclass(slots=True)
class RobotdControl(Control):
    """robotd 1.2 without its bugs: its sensor list, no readings, releases are not announced, errors end the connection.

    The bugs that leave motors running, or subsystems with a driver that is gone, are in FaultyRobotdControl.
    """

    firmware: codec.FirmwareInfo = ROBOTD

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Handle a packet. Raises HangUpError, for a subsystem that there is not as well."""
        if isinstance(packet, _OF_A_SUBSYSTEM) and packet.id >= len(self.vehicle.subsystems):
            raise HangUpError(f"there is no subsystem {packet.id}")
        Control.handle(self, driver, packet, now)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Stop the motors of a driver whose connection has ended, and release what it holds."""
        Control.leave(self, driver, now)
        self.log(f"[{driver}] lost connection", now)

    def send_readings(self, readings: Sequence[codec.SensorReading]) -> None:
        """Send nothing."""

    def _keep_alive(self, driver: Driver, packet: codec.KeepAlive, now: Instant) -> None:
        age_s = (now.wall_ms - packet.time_ms) / 1000
        if age_s > OLDEST_KEEP_ALIVE_S:
            for number in self._driven_by(driver):
                self._safe_mode(number, f"the keep-alive of {driver} is {age_s:.1f} s old", now)
        driver.send(packet)

    def _driven_by(self, driver: Driver) -> list[int]:
        """Return the skid steers that an old keep-alive of this driver stops."""
        return [number for number in self._held_by(driver) if self._is_skid_steer(number)]

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if number in self._owners:  # by the driver itself as well
            driver.send(codec.BindFailure(number))
        elif driver.name is None:
            raise HangUpError("it binds without having registered")
        else:
            Control._bind(self, driver, number, now)

    def _release(self, number: int, driver: Driver, now: Instant) -> None:
        """Release a subsystem without announcing it."""
        del now, self._owners[number]
        self.report(f"{driver} has unbound subsystem {number}")

    def _sensor_info(self) -> codec.SensorInfo:
        listed = self.vehicle.sensors()
        sensors = tuple(replace(each, value=None, full_voltage_mv=_whole_volts(each)) for each in listed)
        # Nothing on the wire tells the layout of an empty list, so it is that of the document.
        return codec.SensorInfo(sensors, codec.SensorLayout.ROBOTD_1_2 if sensors else codec.SensorLayout.DOCUMENT)


@dataclass(slots=True)
class FaultyRobotdControl(RobotdControl):
    """robotd 1.2 with its bugs: only old keep-alives stop motors, and a driver that is gone is never forgotten.

    A bind sets the owner and is then announced to all drivers there ever were: a closed connection among them fails
    the bind and ends the binder's connection, and the binder stays the owner forever.
    """

    _first_gone: int | None = None  # in order of connection; announcements get no further
    _granted: dict[Driver, set[int]] = field(default_factory=dict)  # what each driver has ever been granted
    _desynchronized: set[Driver] = field(default_factory=set)

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Handle a packet. Raises HangUpError."""
        if driver in self._desynchronized:
            driver.last_heard_s = now.steady_s
        else:
            RobotdControl.handle(self, driver, packet, now)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Release, unannounced, all that the driver was ever granted, and another may hold. The motors keep running."""
        self.drivers.remove(driver)
        self._desynchronized.discard(driver)
        self._first_gone = driver.order if self._first_gone is None else min(driver.order, self._first_gone)
        self.log(f"[{driver}] lost connection", now)
        for number in self._granted.pop(driver, ()):
            self._owners.pop(number, None)

    def silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Return nobody, unless there are too many drivers."""
        return Control.silent(self, now, allowed_s) if len(self.drivers) >= MAX_DRIVERS else []

    def _driven_by(self, driver: Driver) -> list[int]:
        return [number for number in sorted(self._granted.get(driver, ())) if self._is_skid_steer(number)]

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if number in self._owners:
            driver.send(codec.BindFailure(number))
            return
        self._owners[number] = driver
        if driver.name is None:
            raise HangUpError("it binds without having registered")
        for other in tuple(self.drivers):  # in order of connection
            if self._first_gone is not None and other.order > self._first_gone:
                break
            other.send(codec.SubsystemBound(number, driver.name))
        if self._first_gone is not None:
            self.log(f"[{driver}] #<IOError: closed stream>", now)
            raise HangUpError("it binds after another driver has gone")
        self._granted.setdefault(driver, set()).add(number)
        self.log(f"[{driver}] bound subsystem {number}", now)
        driver.send(codec.BindSuccess(number))

    def _unbind(self, driver: Driver, number: int, now: Instant) -> None:
        if self._owners.get(number) is driver:
            self._release(number, driver, now)

    def _update(self, driver: Driver, packet: codec.Update, now: Instant) -> None:
        if self._owners.get(packet.id) is driver:
            Control._update(self, driver, packet, now)
        else:
            # robotd takes the rest of such a packet for the next one, and understands nothing after it.
            self._desynchronized.add(driver)
            self.report(f"{driver} updates what it has not bound: its bytes can't be read any further")


def _whole_volts(sensor: codec.Sensor) -> int | None:
    """Return the full voltage of a battery in mV, rounded; None of any other sensor."""
    if sensor.type != codec.SensorType.BATTERY:
        return None
    return _MILLIVOLTS_PER_VOLT * round((sensor.full_voltage_mv or 0) / _MILLIVOLTS_PER_VOLT)


@dataclass(slots=True)
class Protocol1Control(Control):
    """Lists batteries only, sends all their values periodically, and both lists unasked when one has changed.

    There is no firmware (0x09), and binds are not announced (0x06).
    """

    readings_period_s: ClassVar[float | None] = 0.25

    _listed: tuple[object, ...] | None = None  # what the lists contained that were sent last

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Handle a packet. Raises HangUpError."""
        Control.handle(self, driver, packet, now)
        if isinstance(packet, codec.RegisterDriver):
            driver.send(codec.LogMessage(f"Hello, {driver.name}"))

    def _query(self, driver: Driver) -> None:
        if self._listed is None:
            self._listed = self._contents()
        driver.send(self._subsystem_info())
        driver.send(self._sensor_info())

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if driver.name is None or not self._is_free(number, driver):
            driver.send(codec.BindFailure(number))
            return
        self._owners[number] = driver
        driver.send(codec.BindSuccess(number))
        self.log(f"{driver} attempted to bind {self.vehicle.subsystems[number].name}", now)

    def _release(self, number: int, driver: Driver, now: Instant) -> None:
        del self._owners[number]
        self.report(f"{driver} has unbound subsystem {number}")

    def send_readings(self, readings: Sequence[codec.SensorReading] = ()) -> None:
        """Send the values of all batteries: nothing but their order tells whose they are."""
        del readings
        if self._listed not in (None, contents := self._contents()):
            self._listed = contents
            for driver in tuple(self.drivers):
                self._query(driver)
        if batteries := self._batteries():
            values = [codec.SensorReading(number, battery.value or 0) for number, battery in enumerate(batteries)]
            self._broadcast(codec.SensorUpdate(tuple(values), has_ids=False))

    def log(self, text: str, now: Instant) -> None:
        """Log a line locally, and to every driver without the time."""
        del now
        self.report(text)
        self.send_log(text)

    def _contents(self) -> tuple[object, ...]:
        """Return what makes a list another one."""
        batteries = [(battery.name, battery.full_voltage_mv) for battery in self._batteries()]
        return batteries, [(subsystem.type, subsystem.name) for subsystem in self.vehicle.subsystems]

    def _batteries(self) -> list[codec.Sensor]:
        """Return those whose voltage is known: the layout has nothing that stands for an unknown one."""
        return [s for s in self.vehicle.sensors() if s.type == codec.SensorType.BATTERY and s.value is not None]

    def _subsystem_info(self) -> codec.SubsystemInfo:
        return codec.SubsystemInfo(
            tuple(
                codec.Subsystem(subsystem.type, subsystem.name, self._holder_name(number))
                for number, subsystem in enumerate(self.vehicle.subsystems)
            )
        )

    def _sensor_info(self) -> codec.SensorInfo:
        batteries = tuple(self._batteries())
        # Nothing on the wire tells the layout of an empty list, so it is that of the document.
        return codec.SensorInfo(batteries, codec.SensorLayout.PROTOCOL_1 if batteries else codec.SensorLayout.DOCUMENT)


#: How a robot of each dialect behaves, without faults.
CONTROLS: dict[Dialect, type[Control]] = {
    Dialect.DOCUMENT: Control,
    Dialect.ROBOTD_1_2: RobotdControl,
    Dialect.PROTOCOL_1: Protocol1Control,
}
