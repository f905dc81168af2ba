# SPDX-License-Identifier: Apache-2.0
"""Who may drive the emulated robot, and what its drivers are sent. No sockets and no clock."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from drone_bridge.emulators.robot.vehicle import Motor, Vehicle
from drone_bridge.programs.program import say
from drone_bridge.protocols.robot import (
    PROTOCOL_VERSION,
    BindFailure,
    BindSubsystem,
    BindSuccess,
    FirmwareInfo,
    FromDriver,
    FromRobot,
    KeepAlive,
    LightUpdate,
    LogMessage,
    MotorSensors,
    QuerySubsystems,
    RegisterDriver,
    Sensor,
    SensorInfo,
    SensorReading,
    SensorType,
    SensorUpdate,
    SkidSteerUpdate,
    Subsystem,
    SubsystemBound,
    SubsystemInfo,
    SubsystemType,
    UnbindSubsystem,
)
from drone_bridge.protocols.text import printable

MAX_DRIVERS: Final = 16
LONGEST_NAME: Final = 255  # characters of a driver; a longer name would not fit the packets that tell of it
NAMES: Final = {SubsystemType.SKID_STEER: "tracks", SubsystemType.LIGHTS: "headlight"}
ALL_SUBSYSTEMS: Final = tuple(NAMES)
_MOTORS: Final = (MotorSensors(0, 1, 2, 3), MotorSensors(0, 4, 5, 6))  # left, right; they share the battery


class HangUpError(Exception):
    """The robot closes the connection to this driver; the text says why."""


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: str
    send: Callable[[FromRobot], None]
    close: Callable[[], None]
    last_heard_s: float  # by a monotonic clock
    name: str | None = None  # None before it has registered
    dropped_because: str = ""  # set when the robot, and not the driver, ends the connection
    order: int = field(default_factory=itertools.count().__next__)  # of connecting

    def __str__(self) -> str:
        return printable(self.name) if self.name else self.peer

    def drop(self, reason: str) -> None:
        """Close the connection."""
        self.dropped_because = reason
        self.close()


@dataclass(slots=True)
class Control:
    """The robot's behaviour as documented; `robotd.RobotdControl` is how one program really behaves."""

    vehicle: Vehicle
    subsystem_types: tuple[SubsystemType, ...] = ALL_SUBSYSTEMS
    is_verbose: bool = False
    drivers: list[Driver] = field(default_factory=list)
    _owners: list[Driver | None] = field(init=False)

    def __post_init__(self) -> None:
        self._owners = [None] * len(self.subsystem_types)

    # What drivers do.

    def handle(self, driver: Driver, packet: FromDriver, now_s: float, clock_ms: int) -> None:
        """Handle a packet. Raises HangUpError.

        Args:
            driver: who sent it.
            packet: of any kind; what is for no subsystem of this driver is ignored.
            now_s: by the monotonic clock.
            clock_ms: by the clock of the wall, which keep-alives are compared with.
        """
        driver.last_heard_s = now_s
        if isinstance(packet, KeepAlive):
            self._keep_alive(driver, packet, clock_ms)
        elif isinstance(packet, QuerySubsystems):
            self._query(driver)
        elif isinstance(packet, RegisterDriver):
            driver.name = packet.name[:LONGEST_NAME]
            say(f"{driver.peer} is {driver}")
        elif isinstance(packet, BindSubsystem):
            self._bind(driver, packet.id)
        elif isinstance(packet, UnbindSubsystem):
            self._unbind(driver, packet.id)
        elif isinstance(packet, (SkidSteerUpdate, LightUpdate)):
            self._update(driver, packet)

    def leave(self, driver: Driver) -> None:
        """Handle the end of a driver's connection: its motors are stopped."""
        self.drivers.remove(driver)
        for number, owner in enumerate(self._owners):
            if owner is driver:
                if self._is_skid_steer(number):
                    self._stop(f"{driver} has vanished")
                self._release(number, driver)

    def look_for_silence(self, now_s: float, allowed_s: float) -> None:
        """Drop the drivers that have been silent for too long, and free what they hold."""
        for driver in tuple(self.drivers):
            if not driver.dropped_because and now_s - driver.last_heard_s > allowed_s:
                if any(owner is driver and self._is_skid_steer(number) for number, owner in enumerate(self._owners)):
                    self._stop(f"{driver} is silent")
                driver.drop(f"it has said nothing for {allowed_s:g} s")

    def _keep_alive(self, driver: Driver, packet: KeepAlive, clock_ms: int) -> None:
        del clock_ms  # the document gives keep-alives no age
        driver.send(packet)

    def _query(self, driver: Driver) -> None:
        for answer in (self._sensor_info(), self._subsystem_info(), self._firmware()):
            driver.send(answer)

    def _bind(self, driver: Driver, number: int) -> None:
        if driver.name is None or number >= len(self._owners) or self._owners[number] not in (None, driver):
            driver.send(BindFailure(number))
            return
        if self._owners[number] is None:
            self._owners[number] = driver
            self._tell_everybody(SubsystemBound(number, driver.name))
            self._log(f"[{driver}] bound subsystem {number}")
        driver.send(BindSuccess(number))

    def _unbind(self, driver: Driver, number: int) -> None:
        if self._has(driver, number):
            if self._is_skid_steer(number):
                self._stop(f"{driver} has unbound them")
            self._release(number, driver)

    def _update(self, driver: Driver, packet: SkidSteerUpdate | LightUpdate) -> None:
        if not self._has(driver, packet.id):
            return
        if isinstance(packet, LightUpdate):
            self.vehicle.is_light_on = packet.is_on
            say(f"light {'on' if packet.is_on else 'off'}")
        else:
            self._report_motors(packet.left, packet.right)
            self.vehicle.drive(packet.left, packet.right)

    def _release(self, number: int, driver: Driver) -> None:
        self._owners[number] = None
        self._tell_everybody(SubsystemBound(number, ""))
        self._log(f"[{driver}] unbound subsystem {number}")

    def _has(self, driver: Driver, number: int) -> bool:
        return number < len(self._owners) and self._owners[number] is driver

    def _is_skid_steer(self, number: int) -> bool:
        return self.subsystem_types[number] is SubsystemType.SKID_STEER

    def _stop(self, reason: str) -> None:
        self.vehicle.stop()
        say(f"motors stopped: {reason}")

    def _report_motors(self, left: int, right: int) -> None:
        if self.is_verbose and (left, right) != (self.vehicle.left.setting, self.vehicle.right.setting):
            say(f"motors {left} {right}")

    # What drivers get.

    def update_sensors(self) -> None:
        """Send every driver the readings."""
        readings = (SensorReading(i, sensor.value or 0) for i, sensor in enumerate(self._sensors()))
        self._tell_everybody(SensorUpdate(tuple(readings)))

    def _log(self, text: str) -> None:
        say(text)
        self._tell_everybody(LogMessage(f"[{time.strftime('%b %d %Y %I:%M:%S %p')}] {text}"))

    def _tell_everybody(self, packet: FromRobot) -> None:
        for driver in tuple(self.drivers):
            driver.send(packet)

    def _firmware(self) -> FirmwareInfo:
        return FirmwareInfo("emulator", "1", PROTOCOL_VERSION)

    def _subsystem_info(self) -> SubsystemInfo:
        return SubsystemInfo(
            tuple(
                Subsystem(
                    kind,
                    NAMES[kind],
                    (owner and owner.name) or "",
                    *(_MOTORS if kind is SubsystemType.SKID_STEER else ()),
                )
                for kind, owner in zip(self.subsystem_types, self._owners, strict=True)
            )
        )

    def _sensor_info(self) -> SensorInfo:
        return SensorInfo(tuple(self._sensors()))

    def _sensors(self) -> Iterable[Sensor]:
        vehicle = self.vehicle
        full_voltage_mv = round(1000 * vehicle.chassis.full_voltage)
        yield Sensor(SensorType.BATTERY, "battery", round(1000 * vehicle.voltage), full_voltage_mv)
        for side, motor in (("left", vehicle.left), ("right", vehicle.right)):
            yield from _motor_sensors(side, motor)


def _motor_sensors(side: str, motor: Motor) -> Iterable[Sensor]:
    yield Sensor(SensorType.THERMOMETER, f"{side} motor", round(100 * motor.temperature))
    yield Sensor(SensorType.AMMETER, f"{side} motor", round(1000 * motor.current))
    yield Sensor(SensorType.MOTOR_PWM, f"{side} motor", motor.setting)
