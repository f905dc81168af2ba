# SPDX-License-Identifier: Apache-2.0
"""The robot's side of the conversations with all drivers, for any robot that can be driven: who may drive what.

This is the document's behaviour; `dialects` has that of programs which differ.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol

from drone_bridge.robot import codec
from drone_bridge.wire.outgoing import encoded
from drone_bridge.wire.printable import printable

TRACKS = "tracks"  # default names of subsystems
HEADLIGHT = "headlight"


@dataclass(frozen=True, slots=True)
class DrivenSubsystem:
    """Something that one driver at a time can bind. Its id is its index among the vehicle's subsystems."""

    type: codec.SubsystemType
    name: str
    motors: tuple[codec.MotorSensors, codec.MotorSensors] | None = None  # left and right, of a skid steer
    is_available: bool = True  # False: binds are refused
    other_driver: str = ""  # the name of a driver elsewhere that holds it


class RobotVehicle(Protocol):
    """A robot. Numbers are ids of subsystems."""

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        """The subsystems that can be bound."""

    def drive(self, number: int, left: int, right: int) -> None:
        """Set the motors of a skid steer, each from -FULL_SPEED to FULL_SPEED."""

    def stop(self, number: int) -> None:
        """Stop the motors of a skid steer."""

    def light(self, number: int, is_on: bool) -> None:
        """Switch a light."""

    def sensors(self) -> Sequence[codec.Sensor]:
        """Return every sensor with its current value, None if unknown."""


def clamped(speed: int) -> int:
    """Return a speed limited to the valid range, which drivers may exceed."""
    return max(-codec.FULL_SPEED, min(codec.FULL_SPEED, speed))


# The connected drivers.


class HangUpError(Exception):
    """The robot closes the connection to this driver; the text is the reason."""


class Instant(NamedTuple):
    """A point in time, by two clocks."""

    steady_s: float  # by a monotonic clock
    wall_ms: int  # since 1970


#: A keep-alive is late if it took longer than the quickest of the last ones by more than this.
LATE_S = 0.3
#: A driver whose keep-alives are late for longer after a silence has set its clock.
BACKLOG_S = 2.0
#: Keep-alives carry the driver's time, as milliseconds since 1970; some programs write other numbers.
_EARLIEST_MS = 10**12


class Backlog:
    """Whether a driver that was silent says what it had to say meanwhile, judged by the stamps of its keep-alives."""

    def __init__(self) -> None:
        self._delays_s: deque[float] = deque(maxlen=16)  # clocks differ: only their differences mean anything
        self._since_s: float | None = None  # when it was heard again; None before that

    def begin(self) -> bool:
        """Note that the driver is silent; return whether its next words may be old."""
        self._since_s = None
        return bool(self._delays_s)

    def is_late(self, time_ms: int, now_s: float) -> bool:
        """Take a keep-alive; return whether it waited on its way, of a driver that was silent before."""
        if time_ms < _EARLIEST_MS:
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        delay_s = now_s - time_ms / 1000
        is_late = bool(self._delays_s) and delay_s - min(self._delays_s) > LATE_S
        if is_late and now_s - self._since_s <= BACKLOG_S:
            return True
        if is_late:
            self._delays_s.clear()
        self._delays_s.append(delay_s)
        return False


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: str
    send: Callable[[codec.FromRobot], None]
    close: Callable[[], None]
    last_heard_s: float  # by a monotonic clock
    name: str | None = None  # None before it has registered
    drop_reason: str = ""  # set when the robot ends the connection
    has_backlog: bool = False  # after a silence: its updates wait for a keep-alive that is not late
    is_halted: bool = False  # its motors were stopped for its silence, until its next update
    backlog: Backlog = field(default_factory=Backlog)
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)  # speeds by subsystem, until it is up to date
    order: int = field(default_factory=itertools.count().__next__)  # of connection

    def __str__(self) -> str:
        return printable(self.name) if self.name else self.peer

    def drop(self, reason: str) -> None:
        self.drop_reason = self.drop_reason or reason
        self.close()


# Who may drive the robot, and what its drivers are sent.


MAX_DRIVERS = 16
LONGEST_NAME = 255  # characters of a driver's name that fit the packets that contain it


@dataclass(slots=True)
class Control:
    """The robot's side of the conversations with all drivers."""

    #: Whether drivers are sent readings of sensors (0x05).
    sends_readings: ClassVar[bool] = True
    #: How often `send_readings` is to be called, s; None for whenever there is a new value.
    readings_period_s: ClassVar[float | None] = None

    vehicle: RobotVehicle
    report: Callable[[str], None]  # logs a sentence
    firmware: codec.FirmwareInfo = field(
        default_factory=lambda: codec.FirmwareInfo("drone_bridge", "1", codec.PROTOCOL_VERSION)
    )
    is_settling: Callable[[], bool] = lambda: False  # whether this process has just stood still
    drivers: list[Driver] = field(default_factory=list)
    _owners: dict[int, Driver] = field(default_factory=dict)  # by subsystem
    _nulls: set[int] = field(default_factory=set)  # sensors that were listed as null because they had no value

    # Requests of drivers.

    def join(self, driver: Driver) -> None:
        """Add a driver, which is sent nothing until it asks."""
        self.drivers.append(driver)

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Handle a packet; updates of subsystems that the driver has not bound are ignored. Raises HangUpError."""
        driver.last_heard_s = now.steady_s
        if isinstance(packet, codec.KeepAlive):
            driver.has_backlog = driver.backlog.is_late(packet.time_ms, now.steady_s) and driver.is_halted
            self._keep_alive(driver, packet, now)
            self._catch_up(driver)
        elif isinstance(packet, codec.QuerySubsystems):
            self._query(driver)
        elif isinstance(packet, codec.RegisterDriver):
            driver.name = packet.name[:LONGEST_NAME]
            self.report(f"{driver.peer} is {driver}")
        elif isinstance(packet, codec.BindSubsystem):
            self._bind(driver, packet.id, now)
        elif isinstance(packet, codec.UnbindSubsystem):
            self._unbind(driver, packet.id, now)
        elif isinstance(packet, (codec.SkidSteerUpdate, codec.LightUpdate, codec.OpaqueUpdate)):
            self._update(driver, packet)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Stop the motors of a driver whose connection has ended, and release what it holds."""
        self.drivers.remove(driver)
        for number in self._held_by(driver):
            if self._is_skid_steer(number):
                self._stop(number, f"{driver} has vanished")
            self._release(number, driver, now)

    def revoke(self, number: int, now: Instant) -> None:
        """Release a subsystem that is no longer available."""
        if driver := self._owners.get(number):
            if self._is_skid_steer(number):
                self._stop(number, f"{driver} has lost them")
            self._release(number, driver, now)

    def drop_silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Drop the drivers that have been silent for too long, release what they hold, and return them."""
        dropped = [driver for driver in self._silent(now, allowed_s) if not driver.drop_reason]
        for driver in dropped:
            for number in self._held_by(driver):
                if self._is_skid_steer(number):
                    self._stop(number, f"{driver} is silent")
            driver.drop(f"it has been silent for {allowed_s:g} s")
        return dropped

    def halt_silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Stop the motors of drivers that have been silent for too long, until their next update; return them."""
        return self._halt(self._silent(now, allowed_s), f"has been silent for {allowed_s:g} s", now)

    def halt_all(self, now: Instant) -> list[Driver]:
        """Stop the motors of every driver in the same way, as this process stood still; return whose they are.

        However lately one was heard: it may have been read before the stall, and handled after it.
        """
        return self._halt(self.drivers, "may be gone, as nobody listened to it", now)

    def _halt(self, drivers: Sequence[Driver], reason: str, now: Instant) -> list[Driver]:
        halted = [driver for driver in drivers if not driver.is_halted and self._held_by(driver)]
        for driver in halted:
            driver.is_halted, driver.has_backlog = True, driver.backlog.begin()
            driver.waiting.clear()
            for number in self._held_by(driver):
                if self._is_skid_steer(number):
                    self._safe_mode(number, f"{driver} {reason}", now)
        return halted

    def _silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        return [driver for driver in self.drivers if now.steady_s - driver.last_heard_s > allowed_s]

    def silent_at_s(self, allowed_s: float) -> float:
        """Return when `halt_silent` is due at the earliest; infinity for never."""
        heard = [driver.last_heard_s for driver in self.drivers if not driver.is_halted and self._held_by(driver)]
        return min(heard, default=float("inf")) + allowed_s

    @property
    def holders(self) -> dict[int, Driver]:
        """The drivers by the subsystems they hold."""
        return dict(self._owners)

    def _keep_alive(self, driver: Driver, packet: codec.KeepAlive, now: Instant) -> None:
        del now  # the document gives keep-alives no age
        driver.send(packet)

    def _query(self, driver: Driver) -> None:
        for answer in (self._sensor_info(), self._subsystem_info(), self.firmware):
            driver.send(answer)

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        if driver.name is None or not self._is_free(number, driver):
            driver.send(codec.BindFailure(number))
            return
        if number not in self._owners:
            self._owners[number] = driver
            self._broadcast(codec.SubsystemBound(number, driver.name))
            self.log(f"[{driver}] bound subsystem {number}", now)
        driver.send(codec.BindSuccess(number))

    def _unbind(self, driver: Driver, number: int, now: Instant) -> None:
        if self._owners.get(number) is driver:
            if self._is_skid_steer(number):
                self._stop(number, f"{driver} has unbound them")
            self._release(number, driver, now)

    def _update(self, driver: Driver, packet: codec.SkidSteerUpdate | codec.LightUpdate | codec.OpaqueUpdate) -> None:
        if self._owners.get(packet.id) is not driver or isinstance(packet, codec.OpaqueUpdate):
            return
        if isinstance(packet, codec.LightUpdate):
            self.vehicle.light(packet.id, packet.is_on)
        elif driver.has_backlog or self.is_settling():
            driver.waiting[packet.id] = packet.left, packet.right
        else:
            self._drive(driver, packet.id, packet.left, packet.right)

    def _catch_up(self, driver: Driver) -> None:
        """Follow the newest of the updates that came while it was not known whether they were old."""
        if driver.has_backlog or self.is_settling():
            return
        waiting, driver.waiting = driver.waiting, {}
        for number, (left, right) in waiting.items():
            if self._owners.get(number) is driver:
                self._drive(driver, number, left, right)

    def _drive(self, driver: Driver, number: int, left: int, right: int) -> None:
        driver.is_halted = False
        driver.waiting.pop(number, None)
        self.vehicle.drive(number, clamped(left), clamped(right))

    def _release(self, number: int, driver: Driver, now: Instant) -> None:
        del self._owners[number]
        self._broadcast(codec.SubsystemBound(number, ""))
        self.log(f"[{driver}] unbound subsystem {number}", now)

    def _is_free(self, number: int, driver: Driver) -> bool:
        subsystems = self.vehicle.subsystems
        if number >= len(subsystems) or not subsystems[number].is_available:
            return False
        return self._owners.get(number, driver) is driver

    def _held_by(self, driver: Driver) -> list[int]:
        return sorted(number for number, owner in self._owners.items() if owner is driver)

    def _is_skid_steer(self, number: int) -> bool:
        return self.vehicle.subsystems[number].type == codec.SubsystemType.SKID_STEER

    def _stop(self, number: int, reason: str) -> None:
        self.vehicle.stop(number)
        self.report(f"motors stopped: {reason}")

    def _safe_mode(self, number: int, reason: str, now: Instant) -> None:
        self.log(f"{{{self.vehicle.subsystems[number].name}}} safe mode", now)
        self._stop(number, reason)

    # Packets to drivers.

    def send_readings(self, readings: Sequence[codec.SensorReading]) -> None:
        """Send new values to every driver. If a sensor was listed without a value, the list is sent again first."""
        if not self.sends_readings or not readings:
            return
        if any(reading.sensor in self._nulls for reading in readings):
            self._nulls.clear()
            self._broadcast(self._sensor_info())
        self._broadcast(codec.SensorUpdate(tuple(readings)))

    def log(self, text: str, now: Instant) -> None:
        """Log a line locally, and to every driver with the time in robotd's format."""
        self.report(text)
        time = datetime.fromtimestamp(now.wall_ms / 1000).strftime("%b %d %Y %I:%M:%S %p")
        self.send_log(f"[{time}] {text}")

    def send_log(self, line: str) -> None:
        """Send a log line to every driver."""
        self._broadcast(codec.LogMessage(line))

    def _broadcast(self, packet: codec.FromRobot) -> None:
        for driver in tuple(self.drivers):
            driver.send(packet)

    def _subsystem_info(self) -> codec.SubsystemInfo:
        return codec.SubsystemInfo(
            tuple(
                codec.Subsystem(subsystem.type, subsystem.name, self._holder_name(number), *(subsystem.motors or ()))
                for number, subsystem in enumerate(self.vehicle.subsystems)
            )
        )

    def _holder_name(self, number: int) -> str:
        owner = self._owners.get(number)
        return (owner and owner.name) or self.vehicle.subsystems[number].other_driver

    def _sensor_info(self) -> codec.SensorInfo:
        """Return the list, in which a sensor without a value is null."""
        sensors = tuple(self.vehicle.sensors())
        listed = tuple(s if s.value is not None else codec.Sensor(codec.SensorType.NULL, s.name) for s in sensors)
        self._nulls |= {number for number, sensor in enumerate(sensors) if sensor is not listed[number]}
        return codec.SensorInfo(listed)


# One driver's connection to a robot: bytes in, bytes out.


class RobotConversation:
    """One driver, which is known to `Control` from the start until `leave`."""

    def __init__(
        self,
        control: Control,
        peer: str,
        send: Callable[[bytes], None],
        close: Callable[[], None],
        clock: Callable[[], Instant],
        *,
        is_suppressed: Callable[[codec.FromRobot], bool] = lambda packet: False,
        reads_one_packet: bool = False,
        unencodable: Callable[[str], None] | None = None,
    ) -> None:
        """Join.

        Args:
            control: of the robot.
            peer: the driver's address, for logs.
            send: sends bytes to the driver without blocking.
            close: ends the connection.
            clock: returns the time.
            is_suppressed: returns whether to drop a packet, for emulated faults.
            reads_one_packet: handle one of the packets in each socket read, as the LEGO NXT adapters do.
            unencodable: gets a sentence about a packet that can't be encoded, and is not sent; by default a report.
        """
        self._control = control
        self._send = send
        self._clock = clock
        self._is_suppressed = is_suppressed
        self._reads_one_packet = reads_one_packet
        self._unencodable = unencodable or control.report
        self._has_read = False
        self._received = clock()
        self._connection = codec.RobotConnection([subsystem.type for subsystem in control.vehicle.subsystems])
        self.driver = Driver(peer, self._send_packet, close, self._received.steady_s)
        control.join(self.driver)

    @property
    def inside_message(self) -> bool:
        return self._connection.inside_message and not self._reads_one_packet

    def receive_data(self, data: bytes) -> None:
        self._received = self._clock()  # a packet may be handled much later
        self._connection.receive_data(data)
        self._has_read = True

    def handle_next(self) -> bool:
        """See Client. Raises RemoteProtocolError and HangUpError, which end the connection."""
        if self.driver.drop_reason or (self._reads_one_packet and not self._has_read):
            return False
        self._has_read = False
        event = self._connection.next_event()
        if event is codec.NEED_DATA or isinstance(event, codec.ConnectionClosed):
            return False
        self._control.handle(self.driver, event, self._received)
        return True

    def flush(self) -> None:
        """See Client. Nothing is queued."""

    def receive_eof(self) -> None:
        """Handle the end of the driver's stream. Raises RemoteProtocolError if it is inside a packet."""
        self._connection.receive_eof()
        self._reads_one_packet = False  # from now on reads wait for nothing, and one follows the other
        while self.handle_next():
            pass

    def leave(self, reason: str) -> None:
        self._control.leave(self.driver, self._clock())
        self._control.report(f"{self.driver} is gone: {self.driver.drop_reason or reason}")

    def _send_packet(self, packet: codec.FromRobot) -> None:
        if self.driver.drop_reason or self._is_suppressed(packet):
            return
        if data := encoded(self._connection.send, packet, None, self._unencodable):
            self._send(data)


# How programs behave where they differ from the document; see docs/robot.md.


OLDEST_KEEP_ALIVE_S = 2.0  # by the robot's clock; the motors are stopped for an older one
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

    sends_readings: ClassVar[bool] = False

    firmware: codec.FirmwareInfo = field(
        default_factory=lambda: codec.FirmwareInfo("robotd", "1.2", codec.PROTOCOL_VERSION)
    )

    def leave(self, driver: Driver, now: Instant) -> None:
        """Stop the motors of a driver whose connection has ended, and release what it holds."""
        self.drivers.remove(driver)
        self.log(f"[{driver}] lost connection", now)
        for number in self._held_by(driver):
            if self._is_skid_steer(number):
                self._stop(number, f"{driver} has vanished")
            del self._owners[number]

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
        self._require_subsystem(number)
        if number in self._owners or not self.vehicle.subsystems[number].is_available:
            driver.send(codec.BindFailure(number))
            return
        if driver.name is None:
            raise HangUpError("it binds without having registered")
        self._owners[number] = driver
        self._broadcast(codec.SubsystemBound(number, driver.name))
        self._grant(driver, number, now)

    def _grant(self, driver: Driver, number: int, now: Instant) -> None:
        self.log(f"[{driver}] bound subsystem {number}", now)
        driver.send(codec.BindSuccess(number))

    def _unbind(self, driver: Driver, number: int, now: Instant) -> None:
        self._require_subsystem(number)
        if self._owners.get(number) is driver:
            if self._is_skid_steer(number):
                self._stop(number, f"{driver} has unbound them")
            self._release_silently(number, driver)

    def _release_silently(self, number: int, driver: Driver) -> None:
        """Release a subsystem without announcing it."""
        del self._owners[number]
        self.report(f"{driver} has unbound subsystem {number}")

    def _release(self, number: int, driver: Driver, now: Instant) -> None:
        del now
        self._release_silently(number, driver)

    def _update(self, driver: Driver, packet: codec.SkidSteerUpdate | codec.LightUpdate | codec.OpaqueUpdate) -> None:
        self._require_subsystem(packet.id)
        Control._update(self, driver, packet)

    def _require_subsystem(self, number: int) -> None:
        if number >= len(self.vehicle.subsystems):
            raise HangUpError(f"there is no subsystem {number}")

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
            return
        Control.handle(self, driver, packet, now)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Release, unannounced, all that the driver was ever granted, and another may hold. The motors keep running."""
        self.drivers.remove(driver)
        self._desynchronized.discard(driver)
        self._first_gone = driver.order if self._first_gone is None else min(driver.order, self._first_gone)
        self.log(f"[{driver}] lost connection", now)
        for number in self._granted.pop(driver, ()):
            self._owners.pop(number, None)

    def drop_silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Drop nobody, unless there are too many drivers."""
        return Control.drop_silent(self, now, allowed_s) if len(self.drivers) >= MAX_DRIVERS else []

    def halt_silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Stop no motors."""
        del now, allowed_s
        return []

    def _driven_by(self, driver: Driver) -> list[int]:
        return [number for number in sorted(self._granted.get(driver, ())) if self._is_skid_steer(number)]

    def _query(self, driver: Driver) -> None:
        if any(owner.name is None for owner in self._owners.values()):
            raise HangUpError("it queries, and a driver without a name has a subsystem")
        Control._query(self, driver)

    def _bind(self, driver: Driver, number: int, now: Instant) -> None:
        self._require_subsystem(number)
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
        self._grant(driver, number, now)

    def _unbind(self, driver: Driver, number: int, now: Instant) -> None:
        self._require_subsystem(number)
        if self._owners.get(number) is driver:
            self._release(number, driver, now)

    def _update(self, driver: Driver, packet: codec.SkidSteerUpdate | codec.LightUpdate | codec.OpaqueUpdate) -> None:
        self._require_subsystem(packet.id)
        if self._owners.get(packet.id) is driver:
            Control._update(self, driver, packet)
        else:
            # robotd takes the rest of such a packet for the next one, and understands nothing after it.
            self._desynchronized.add(driver)
            self.report(f"{driver} updates what it has not bound: its bytes can't be read any further")


def _whole_volts(sensor: codec.Sensor) -> int | None:
    """Return the full voltage of a battery in mV, rounded; None of any other sensor."""
    if sensor.type != codec.SensorType.BATTERY:
        return None
    return _MILLIVOLTS_PER_VOLT * round((sensor.full_voltage_mv or 0) / _MILLIVOLTS_PER_VOLT)


# Protocol 1, as the LEGO NXT adapters speak it and robotd did before 2017.


@dataclass(slots=True)
class Protocol1Control(Control):
    """Lists batteries only, sends all their values periodically, and both lists unasked when one has changed.

    There is no firmware (0x09), and binds are not announced (0x06).
    """

    readings_period_s: ClassVar[float | None] = 0.25

    _told: tuple[object, ...] | None = None  # what the lists contained that were sent last

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Handle a packet. Raises HangUpError."""
        Control.handle(self, driver, packet, now)
        if isinstance(packet, codec.RegisterDriver):
            driver.send(codec.LogMessage(f"Hello, {driver.name}"))

    def _query(self, driver: Driver) -> None:
        if self._told is None:
            self._told = self._contents()
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
        if self._told not in (None, contents := self._contents()):
            self._told = contents
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
