# SPDX-License-Identifier: Apache-2.0
"""Who may drive the emulated robot, and what it tells its drivers. No sockets and no clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from drone_bridge.emulators.program import say
from drone_bridge.emulators.robot.vehicle import Motor, Vehicle
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
    SensorLayout,
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

TRACKS: Final = 0
LIGHT: Final = 1
SUBSYSTEM_TYPES: Final = (SubsystemType.SKID_STEER, SubsystemType.LIGHTS)
OLDEST_KEEP_ALIVE_S: Final = 2.0  # robotd stops the motors for one that is older, by its own clock
LONGEST_NAME: Final = 255  # characters of a driver; a longer name would not fit the packets that tell of it
_NAMES: Final = ("tracks", "headlight")
_MOTORS: Final = (MotorSensors(0, 1, 2, 3), MotorSensors(0, 4, 5, 6))  # left, right; they share the battery


class Dialect(str, Enum):
    """How the robot speaks."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # as that program does, so far as it is known; see docs/robot.md


class HangUpError(Exception):
    """The robot closes the connection to this driver; the text says why."""


@dataclass(slots=True, eq=False)
class Driver:
    """Somebody who is connected."""

    peer: str
    send: Callable[[FromRobot], None]
    last_heard_s: float  # by a monotonic clock
    name: str | None = None  # None before it has registered
    is_silent: bool = False

    def __str__(self) -> str:
        return printable(self.name) if self.name else self.peer


@dataclass(slots=True)
class _Binding:
    """Who has one subsystem. A name without a driver is that of one who has vanished, which robotd never forgets."""

    driver: Driver | None = None
    name: str = ""


@dataclass(slots=True)
class Control:
    """The robot's behaviour."""

    vehicle: Vehicle
    dialect: Dialect = Dialect.DOCUMENT
    is_verbose: bool = False
    drivers: list[Driver] = field(default_factory=list)
    _bindings: list[_Binding] = field(default_factory=lambda: [_Binding() for _ in SUBSYSTEM_TYPES])

    @property
    def _is_robotd(self) -> bool:
        return self.dialect is Dialect.ROBOTD_1_2

    # What drivers do.

    def handle(self, driver: Driver, packet: FromDriver, now_s: float, clock_ms: int) -> None:
        """Do what a packet asks for. Raises HangUpError.

        Args:
            driver: who sent it.
            packet: of any kind; what is for no subsystem of this driver is ignored.
            now_s: by the monotonic clock.
            clock_ms: by the clock of the wall, which keep-alives are compared with.
        """
        driver.last_heard_s, driver.is_silent = now_s, False
        if isinstance(packet, KeepAlive):
            driver.send(packet)
            if self._is_robotd and clock_ms - packet.time_ms > 1000 * OLDEST_KEEP_ALIVE_S:
                self._stop(f"the keep-alive of {driver} is {(clock_ms - packet.time_ms) / 1000:.1f} s old")
        elif isinstance(packet, QuerySubsystems):
            for answer in (self._sensor_info(), self._subsystem_info(), FirmwareInfo(*self._firmware())):
                driver.send(answer)
        elif isinstance(packet, RegisterDriver):
            driver.name = packet.name[:LONGEST_NAME]
            say(f"{driver.peer} is {driver}")
        elif isinstance(packet, BindSubsystem):
            self._bind(driver, packet.id)
        elif isinstance(packet, UnbindSubsystem):
            self._unbind(driver, packet.id)
        elif isinstance(packet, SkidSteerUpdate) and self._has(driver, packet.id):
            self._report_motors(packet.left, packet.right)
            self.vehicle.drive(packet.left, packet.right)
        elif isinstance(packet, LightUpdate) and self._has(driver, packet.id):
            self.vehicle.is_light_on = packet.is_on
            say(f"light {'on' if packet.is_on else 'off'}")

    def leave(self, driver: Driver) -> None:
        """Note that a driver has closed its connection, or that it was lost. Stops the motors, unlike robotd."""
        self.drivers.remove(driver)
        for number, binding in enumerate(self._bindings):
            if binding.driver is not driver:
                continue
            binding.driver = None
            if SUBSYSTEM_TYPES[number] is SubsystemType.SKID_STEER:
                self._stop(f"{driver} has vanished")
            if not self._is_robotd:
                self._release(number, driver)

    def look_for_silence(self, now_s: float, allowed_s: float) -> None:
        """Stop the motors when the driver who has them has not been heard of for so long."""
        driver = self._bindings[TRACKS].driver
        if driver and not driver.is_silent and now_s - driver.last_heard_s > allowed_s:
            driver.is_silent = True
            self._stop(f"{driver} is silent")

    def _bind(self, driver: Driver, number: int) -> None:
        if self._is_robotd:
            self._hang_up_as_robotd(driver, number)
        binding = self._bindings[number] if number < len(self._bindings) else None
        if driver.name is None or binding is None or binding.driver not in (None, driver):
            driver.send(BindFailure(number))
            return
        if binding.driver is None:
            binding.driver, binding.name = driver, driver.name
            self._tell_everybody(SubsystemBound(number, driver.name))
            self._log(f"[{driver}] bound subsystem {number}")
        driver.send(BindSuccess(number))

    def _hang_up_as_robotd(self, driver: Driver, number: int) -> None:
        if driver.name is None:
            raise HangUpError("it binds without having registered")
        if number < len(self._bindings):
            binding = self._bindings[number]
            if binding.name and not binding.driver:
                vanished, binding.name = printable(binding.name), ""
                raise HangUpError(f"it binds what {vanished} had, who has vanished")

    def _unbind(self, driver: Driver, number: int) -> None:
        if not self._has(driver, number):
            return
        if SUBSYSTEM_TYPES[number] is SubsystemType.SKID_STEER and not self._is_robotd:
            self._stop(f"{driver} has unbound them")
        self._release(number, driver)

    def _release(self, number: int, driver: Driver) -> None:
        self._bindings[number] = _Binding()
        self._tell_everybody(SubsystemBound(number, ""))
        self._log(f"[{driver}] unbound subsystem {number}")

    def _has(self, driver: Driver, number: int) -> bool:
        return number < len(self._bindings) and self._bindings[number].driver is driver

    def _stop(self, reason: str) -> None:
        self.vehicle.stop()
        say(f"motors stopped: {reason}")

    def _report_motors(self, left: int, right: int) -> None:
        if self.is_verbose and (left, right) != (self.vehicle.left.setting, self.vehicle.right.setting):
            say(f"motors {left} {right}")

    # What drivers get.

    def update_sensors(self) -> None:
        """Send every driver the readings, which robotd never does."""
        if not self._is_robotd:
            readings = (SensorReading(i, sensor.value or 0) for i, sensor in enumerate(self._sensors()))
            self._tell_everybody(SensorUpdate(tuple(readings)))

    def _log(self, text: str) -> None:
        say(text)
        self._tell_everybody(LogMessage(f"[{time.strftime('%b %d %Y %I:%M:%S %p')}] {text}"))

    def _tell_everybody(self, packet: FromRobot) -> None:
        for driver in tuple(self.drivers):
            driver.send(packet)

    def _firmware(self) -> tuple[str, str, int]:
        return ("robotd", "1.2", PROTOCOL_VERSION) if self._is_robotd else ("emulator", "1", PROTOCOL_VERSION)

    def _subsystem_info(self) -> SubsystemInfo:
        motors = (_MOTORS, (None, None))
        return SubsystemInfo(
            tuple(
                Subsystem(kind, name, binding.name, *sides)
                for kind, name, binding, sides in zip(SUBSYSTEM_TYPES, _NAMES, self._bindings, motors, strict=True)
            )
        )

    def _sensor_info(self) -> SensorInfo:
        if not self._is_robotd:
            return SensorInfo(tuple(self._sensors()))
        full_voltage_mv = 1000 * round(self.vehicle.chassis.full_voltage)
        return SensorInfo(
            tuple(
                Sensor(sensor.type, sensor.name, full_voltage_mv=sensor.full_voltage_mv and full_voltage_mv)
                for sensor in self._sensors()
            ),
            SensorLayout.ROBOTD_1_2,
        )

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
