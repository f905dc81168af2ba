# SPDX-License-Identifier: Apache-2.0
"""The simulated robot as drivers see it: tracks, a headlight, and motor sensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from drone_bridge.programs.program import say
from drone_bridge.robot.codec import MotorSensors, Sensor, SensorReading, SensorType, SubsystemType
from drone_bridge.robot.device.vehicle import HEADLIGHT, TRACKS, DrivenSubsystem
from drone_bridge.robot.emulator.vehicle import Motor, Vehicle

_MOTORS: Final = (MotorSensors(0, 1, 2, 3), MotorSensors(0, 4, 5, 6))  # left, right; they share the battery
#: What it can have, by name.
SUBSYSTEMS: Final = {
    TRACKS: DrivenSubsystem(SubsystemType.SKID_STEER, TRACKS, _MOTORS),
    HEADLIGHT: DrivenSubsystem(SubsystemType.LIGHTS, HEADLIGHT),
}


class SimulatedRobot:
    """A Vehicle whose motors drive the physics."""

    def __init__(
        self,
        physics: Vehicle,
        names: Sequence[str] = tuple(SUBSYSTEMS),
        *,
        appears_s: float = 0.0,
        is_verbose: bool = False,
    ) -> None:
        """Prepare to drive.

        Args:
            physics: of the robot.
            names: of the subsystems, in order.
            appears_s: the age of the robot from which on it has them, and its sensors.
            is_verbose: report each change of the motors.
        """
        self.physics = physics
        self._subsystems = tuple(SUBSYSTEMS[name] for name in names)
        self._appears_s = appears_s
        self._is_verbose = is_verbose

    @property
    def _has_appeared(self) -> bool:
        return self.physics.time >= self._appears_s

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        return self._subsystems if self._has_appeared else ()

    def drive(self, number: int, left: int, right: int) -> None:
        del number
        if self._is_verbose and (left, right) != (self.physics.left.setting, self.physics.right.setting):
            say(f"motors {left} {right}")
        self.physics.drive(left, right)

    def stop(self, number: int) -> None:
        del number
        self.physics.stop()

    def light(self, number: int, is_on: bool) -> None:
        del number
        self.physics.is_light_on = is_on
        say(f"light {'on' if is_on else 'off'}")

    def sensors(self) -> list[Sensor]:
        if not self._has_appeared:
            return []
        full_voltage_mv = round(1000 * self.physics.chassis.full_voltage)
        battery = Sensor(SensorType.BATTERY, "battery", round(1000 * self.physics.voltage), full_voltage_mv)
        sides = (("left", self.physics.left), ("right", self.physics.right))
        return [battery, *(sensor for side, motor in sides for sensor in _motor_sensors(side, motor))]

    def readings(self) -> list[SensorReading]:
        """Return the current values of all sensors."""
        return [SensorReading(number, sensor.value or 0) for number, sensor in enumerate(self.sensors())]


def _motor_sensors(side: str, motor: Motor) -> Iterable[Sensor]:
    yield Sensor(SensorType.THERMOMETER, f"{side} motor", round(100 * motor.temperature))
    yield Sensor(SensorType.AMMETER, f"{side} motor", round(1000 * motor.current))
    yield Sensor(SensorType.MOTOR_PWM, f"{side} motor", motor.setting)
