# SPDX-License-Identifier: Apache-2.0
"""RobotControl: grants subsystems to drivers and handles their packets, as specified.

A subsystem is free or bound by one driver. `dialects` has the behaviour of programs that deviate. All calls come from
one thread and pass the time; nothing here waits, locks or reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from drone_bridge.robot import codec
from drone_bridge.robot.vehicle.device.drivers import Driver, Instant
from drone_bridge.robot.vehicle.device.vehicle import RobotVehicle

MAX_DRIVERS = 16
FIRMWARE = codec.FirmwareInfo("drone_bridge", "0.3.0", codec.PROTOCOL_VERSION)
LONGEST_NAME = 255  # characters of a driver's name that fit each packet with a name


@dataclass(slots=True)
class RobotControl:
    """Robot's side of the protocol with all drivers."""

    #: Period of `send_readings` of an emulated robot, s. None: its own.
    readings_period_s: ClassVar[float | None] = None
    #: Whether the list of subsystems has the sensors of motors.
    lists_motors: ClassVar[bool] = True

    vehicle: RobotVehicle
    report: Callable[[str], None]  # logs a sentence
    refused: Callable[[], object] = lambda: None  # counts an update that is not executed
    firmware: codec.FirmwareInfo = FIRMWARE
    drivers: list[Driver] = field(default_factory=list)
    _owners: dict[int, Driver] = field(default_factory=dict)  # by subsystem
    _nulls: set[int] = field(default_factory=set)  # sensors that were listed as null for lack of a value

    # Requests of drivers.

    def join(self, driver: Driver) -> None:
        """Add a driver. Nothing is sent to it before it sends a query."""
        self.drivers.append(driver)

    def handle(self, driver: Driver, packet: codec.FromDriver, now: Instant) -> None:
        """Execute a packet. Updates of subsystems not bound by the driver are refused. Raises DisconnectPeerError."""
        driver.last_received_s = now.steady_s
        if isinstance(packet, codec.KeepAlive):
            self._keep_alive(driver, packet, now)
        elif isinstance(packet, codec.QuerySubsystems):
            self._query(driver)
        elif isinstance(packet, codec.RegisterDriver):
            driver.name = packet.name[:LONGEST_NAME]
            self.report(f"{driver.peer} is {driver}")
        elif isinstance(packet, codec.BindSubsystem):
            self._bind(driver, packet.id, now)
        elif isinstance(packet, codec.UnbindSubsystem):
            self._unbind(driver, packet.id, now)
        elif isinstance(packet, codec.Update):
            self._update(driver, packet)

    def leave(self, driver: Driver, now: Instant) -> None:
        """Stop the motors of a driver whose connection has ended, and release its subsystems."""
        self.drivers.remove(driver)
        for number in self._held_by(driver):
            self._take_back(number, driver, "has disconnected", now)

    def revoke(self, number: int, now: Instant) -> None:
        """Release a subsystem that is no longer available."""
        if driver := self._owners.get(number):
            self._take_back(number, driver, "has lost the subsystem", now)

    def silent_drivers(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Return the drivers that are silent for longer than that, and block a subsystem or the last place."""
        is_full = len(self.drivers) >= MAX_DRIVERS
        silent = [driver for driver in self.drivers if now.steady_s - driver.last_received_s > allowed_s]
        return [driver for driver in silent if is_full or self._held_by(driver)]

    def halt_silent(self, now: Instant, allowed_s: float) -> list[Driver]:
        """Stop the motors of drivers that are silent for too long, until their next update. Return these drivers."""
        return self._halt(self.silent_drivers(now, allowed_s), f"has been silent for {allowed_s:g} s", now)

    def halt_all(self, now: Instant) -> list[Driver]:
        """Stop the motors of all drivers after a stall of this process, until their next update. Return these drivers.

        This includes drivers that sent a packet lately: it may have been received before the stall and handled after
        it.
        """
        return self._halt(self.drivers, "may have disconnected while the robot was stalled", now)

    def _halt(self, drivers: Sequence[Driver], reason: str, now: Instant) -> list[Driver]:
        halted = [driver for driver in drivers if self._held_by(driver) and not driver.is_halted]
        for driver in halted:
            driver.is_halted = True
            for number in self._held_by(driver):
                if self._is_skid_steer(number):
                    self._safe_mode(number, f"{driver} {reason}", now)
        return halted

    def silent_at_s(self, allowed_s: float) -> float:
        """Return the earliest time at which `halt_silent` is due, or infinity."""
        heard = [driver.last_received_s for driver in self.drivers if not driver.is_halted and self._held_by(driver)]
        return min(heard, default=float("inf")) + allowed_s

    @property
    def holders(self) -> dict[int, Driver]:
        """Drivers by the subsystems that they hold."""
        return dict(self._owners)

    def _keep_alive(self, driver: Driver, packet: codec.KeepAlive, now: Instant) -> None:
        del now  # the specification limits no keep-alive's age
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
            self._take_back(number, driver, "has unbound the subsystem", now)

    def _take_back(self, number: int, driver: Driver, reason: str, now: Instant) -> None:
        if self._is_skid_steer(number):
            self._stop(f"{driver} {reason}")
        self._release(number, driver, now)

    def _update(self, driver: Driver, packet: codec.Update) -> None:
        if self._owners.get(packet.id) is not driver or isinstance(packet, codec.OpaqueUpdate):
            self.refused()
            if not driver.is_warned:
                driver.is_warned = True
                self.report(
                    f"{driver} updates subsystem {packet.id}, which it has not bound, or that has no such update."
                )
            return
        if isinstance(packet, codec.LightUpdate):
            self.vehicle.light(packet.id, packet.is_on)
        else:
            driver.is_halted = False
            left, right = map(codec.SPEED.clamped, (packet.left, packet.right))  # drivers may exceed it
            self.vehicle.drive(left, right)

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

    def _stop(self, reason: str) -> None:
        self.vehicle.stop()
        self.report(f"motors stopped: {reason}")

    def _safe_mode(self, number: int, reason: str, now: Instant) -> None:
        self.log(f"{{{self.vehicle.subsystems[number].name}}} safe mode", now)
        self._stop(reason)

    # Packets to drivers.

    def send_readings(self, readings: Sequence[codec.SensorReading]) -> None:
        """Send new values to every driver. If a sensor was listed without a value, resend the list first."""
        if not readings:
            return
        if any(reading.sensor in self._nulls for reading in readings):
            self._nulls.clear()
            self._broadcast(self._sensor_info())
        self._broadcast(codec.SensorUpdate(tuple(readings)))

    def log(self, text: str, now: Instant) -> None:
        """Log a line locally, and send it to every driver with the time in robotd's format."""
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
        listed = []
        for number, subsystem in enumerate(self.vehicle.subsystems):
            motors = subsystem.motors if subsystem.motors and self.lists_motors else ()
            listed.append(codec.Subsystem(subsystem.type, subsystem.name, self._holder_name(number), *motors))
        return codec.SubsystemInfo(tuple(listed))

    def _holder_name(self, number: int) -> str:
        owner = self._owners.get(number)
        return (owner and owner.name) or self.vehicle.subsystems[number].other_driver

    def _sensor_info(self) -> codec.SensorInfo:
        """Return the list. A sensor without a value is null."""
        sensors = tuple(self.vehicle.sensors())
        listed = tuple(s if s.value is not None else codec.Sensor(codec.SensorType.NULL, s.name) for s in sensors)
        self._nulls |= {number for number, sensor in enumerate(sensors) if sensor is not listed[number]}
        return codec.SensorInfo(listed)
