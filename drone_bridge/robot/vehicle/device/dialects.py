# SPDX-License-Identifier: Apache-2.0
"""RobotdControl and Protocol1Control: programs that deviate from the specification.

`robotd` 1.2:

- lists sensors (0x07) with an int32 type, and a value (full voltage, whole volts) for batteries only; no readings;
- serves one driver in its lifetime: once it has left, the next bind ends the connection of the binding driver, and from
then on all binds are refused in its name;
- announces no release (0x06). When a driver leaves, it frees all subsystems that this driver ever had, even if another
driver has them now;
- disconnects on a bind without registration and on a bind of a missing subsystem; after an update of an unbound
subsystem, it misreads all following data;
- stops motors neither on unbind nor when a driver vanishes.

Protocol 1 (`robotd` before 2017, LEGO NXT adapters): batteries only, in a list of their own (full voltage, voltage,
name); no sensors in a skid steer, no IDs of readings, no firmware (0x09); both lists arrive unsolicited when a brick
appears. The adapters handle one packet per read of the socket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from drone_bridge.robot import codec
from drone_bridge.robot.vehicle.device.control import MAX_DRIVERS, RobotControl
from drone_bridge.robot.vehicle.device.drivers import Driver, Instant
from drone_bridge.wire.events import DisconnectPeerError

OLDEST_KEEP_ALIVE_S = 2.0  # by the robot's clock; an older one stops the motors
ROBOTD = codec.FirmwareInfo("robotd", "1.2", codec.PROTOCOL_VERSION)
_OF_A_SUBSYSTEM = codec.BindSubsystem | codec.UnbindSubsystem | codec.Update
_MILLIVOLTS_PER_VOLT = 1000


class RobotDialect(str, Enum):
    """Variant of the protocol that the robot uses towards its drivers."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # as that program behaves
    PROTOCOL_1 = "protocol-1"  # as the LEGO NXT adapters behave


@dataclass(slots=True)
class RobotdControl(RobotControl):
    """robotd 1.2 without its bugs: its own sensor list, no readings, releases are not announced, errors disconnect.

    FaultyRobotdControl adds the bugs that leave motors running, or subsystems bound by a disconnected driver.
    """

    firmware: codec.FirmwareInfo = ROBOTD

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Execute a packet. Raises DisconnectPeerError, even for a nonexistent subsystem."""
        if isinstance(packet, _OF_A_SUBSYSTEM) and packet.id >= len(self.vehicle.subsystems):
            raise DisconnectPeerError(f"subsystem {packet.id} does not exist")
        RobotControl.handle(self, driver, packet, now)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Stop the motors of a driver whose connection has ended, and release its subsystems."""
        RobotControl.leave(self, driver, now)
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
        """Return the skid steers that a stale keep-alive of this driver stops."""
        return [number for number in self._held_by(driver) if self._is_skid_steer(number)]

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if number in self._owners:  # even by the driver itself
            driver.send(codec.BindFailure(number))
        elif driver.name is None:
            raise DisconnectPeerError("bind before registration")
        else:
            RobotControl._bind(self, driver, number, now)

    def _release(self, number: int, driver: Driver, now: Instant) -> None:
        """Release a subsystem without an announcement."""
        del now, self._owners[number]
        self.report(f"{driver} has unbound subsystem {number}")

    def _sensor_info(self) -> codec.SensorInfo:
        listed = self.vehicle.sensors()
        sensors = tuple(replace(each, value=None, full_voltage_mv=_whole_volts(each)) for each in listed)
        # The layout of an empty list is ambiguous, so the specified one is used.
        return codec.SensorInfo(sensors, codec.SensorLayout.ROBOTD_1_2 if sensors else codec.SensorLayout.DOCUMENT)


@dataclass(slots=True)
class FaultyRobotdControl(RobotdControl):
    """robotd 1.2 with its bugs: only stale keep-alives stop motors, and a disconnected driver is never removed.

    A bind first sets the owner, and is then announced to all drivers since the start. A closed connection among them
    makes the bind fail and ends the binder's connection, while the binder remains the owner.
    """

    _first_gone: int | None = None  # in order of connection; later drivers get no announcements
    _granted: dict[Driver, set[int]] = field(default_factory=dict)  # all subsystems ever granted to each driver
    _desynchronized: set[Driver] = field(default_factory=set)

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Execute a packet. Raises DisconnectPeerError."""
        if driver in self._desynchronized:
            driver.last_received_s = now.steady_s
        else:
            RobotdControl.handle(self, driver, packet, now)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Release all subsystems ever granted to the driver, even if another driver has bound one since.

        Releases are not announced, and the motors keep running.
        """
        self.drivers.remove(driver)
        self._desynchronized.discard(driver)
        self._first_gone = driver.order if self._first_gone is None else min(driver.order, self._first_gone)
        self.log(f"[{driver}] lost connection", now)
        for number in self._granted.pop(driver, ()):
            self._owners.pop(number, None)

    def silent_drivers(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Return no driver, unless there are too many."""
        return RobotControl.silent_drivers(self, now, allowed_s) if len(self.drivers) >= MAX_DRIVERS else []

    def _driven_by(self, driver: Driver) -> list[int]:
        return [number for number in sorted(self._granted.get(driver, ())) if self._is_skid_steer(number)]

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if number in self._owners:
            driver.send(codec.BindFailure(number))
            return
        self._owners[number] = driver
        if driver.name is None:
            raise DisconnectPeerError("bind before registration")
        for other in tuple(self.drivers):  # in order of connection
            if self._first_gone is not None and other.order > self._first_gone:
                break
            other.send(codec.SubsystemBound(number, driver.name))
        if self._first_gone is not None:
            self.log(f"[{driver}] #<IOError: closed stream>", now)
            raise DisconnectPeerError("bind after another driver has disconnected")
        self._granted.setdefault(driver, set()).add(number)
        self.log(f"[{driver}] bound subsystem {number}", now)
        driver.send(codec.BindSuccess(number))

    def _unbind(self, driver: Driver, number: int, now: Instant) -> None:
        if self._owners.get(number) is driver:
            self._release(number, driver, now)

    def _update(self, driver: Driver, packet: codec.Update) -> None:
        if self._owners.get(packet.id) is driver:
            RobotControl._update(self, driver, packet)
        else:
            # robotd parses the rest of such a packet as the next one, and can't decode anything after it.
            self._desynchronized.add(driver)
            self.report(f"{driver} updated a subsystem that it has not bound: its stream can't be decoded any further")


def _whole_volts(sensor: codec.Sensor) -> int | None:
    """Return the full voltage of a battery in mV, rounded to volts. None for other sensors."""
    if sensor.type != codec.SensorType.BATTERY:
        return None
    return _MILLIVOLTS_PER_VOLT * round((sensor.full_voltage_mv or 0) / _MILLIVOLTS_PER_VOLT)


@dataclass(slots=True)
class Protocol1Control(RobotControl):
    """Robot that lists only batteries, sends all their values periodically, and sends changed lists without a query.

    There is no firmware (0x09), and binds are not announced (0x06).
    """

    readings_period_s: ClassVar[float | None] = 0.25
    lists_motors: ClassVar[bool] = False

    _listed: tuple[object, ...] | None = None  # contents of the lists that were sent last

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Execute a packet. Raises DisconnectPeerError."""
        RobotControl.handle(self, driver, packet, now)
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
        """Send the values of all batteries, in order: the packet has no ids."""
        del readings
        if self._listed not in (None, contents := self._contents()):
            self._listed = contents
            for driver in tuple(self.drivers):
                self._query(driver)
        if batteries := self._batteries():
            values = [codec.SensorReading(number, battery.value or 0) for number, battery in enumerate(batteries)]
            self._broadcast(codec.SensorUpdate(tuple(values), has_ids=False))

    def log(self, text: str, now: Instant) -> None:
        """Log a line locally, and send it to every driver without the time."""
        del now
        self.report(text)
        self.send_log(text)

    def _contents(self) -> tuple[object, ...]:
        """Return the contents by which lists are compared."""
        batteries = [(battery.name, battery.full_voltage_mv) for battery in self._batteries()]
        return batteries, [(subsystem.type, subsystem.name) for subsystem in self.vehicle.subsystems]

    def _batteries(self) -> list[codec.Sensor]:
        """Return batteries with a known voltage. The layout can't represent an unknown one."""
        return [s for s in self.vehicle.sensors() if s.type == codec.SensorType.BATTERY and s.value is not None]

    def _sensor_info(self) -> codec.SensorInfo:
        batteries = tuple(self._batteries())
        # The layout of an empty list is ambiguous, so the specified one is used.
        return codec.SensorInfo(batteries, codec.SensorLayout.PROTOCOL_1 if batteries else codec.SensorLayout.DOCUMENT)


#: Classes by the dialects of robot_server, and of the emulator, which has the faults.
SERVED = {RobotDialect.DOCUMENT: RobotControl, RobotDialect.ROBOTD_1_2: RobotdControl}
EMULATED = {
    RobotDialect.DOCUMENT: RobotControl,
    RobotDialect.ROBOTD_1_2: FaultyRobotdControl,
    RobotDialect.PROTOCOL_1: Protocol1Control,
}
