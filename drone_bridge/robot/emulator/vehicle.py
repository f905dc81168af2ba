# SPDX-License-Identifier: Apache-2.0
"""A tracked robot: two motors with their drivers, a battery and a light. Physics only, no protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

FULL: Final = 2048  # a motor's setting at full speed forward

MOTOR_TIME_CONSTANT_S: Final = 0.1
AMBIENT_C: Final = 22.0
EMPTY_FRACTION: Final = 0.85  # of the full voltage, when there is no charge left
IDLE_CURRENT_A: Final = 0.2  # of the electronics
ROLLING_CURRENT_A: Final = 2.0  # of a motor at full speed
TURNING_CURRENT_A: Final = 4.0  # more, of each motor when they run at full speed against each other: tracks skid
ACCELERATION_CURRENT_A: Final = 6.0  # more, of a motor that stands still and should be at full speed
BATTERY_RESISTANCE_OHM: Final = 0.05
HEATING_K_PER_A2_S: Final = 0.02
COOLING_PER_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Chassis:
    """The constants of the chassis."""

    wheel_separation: float = 0.5  # m between the tracks
    max_speed: float = 1.0  # m/s of a track at full speed
    full_voltage: float = 12.6  # V
    capacity: float = 7.0  # Ah


@dataclass(slots=True)
class Motor:
    """One track's motor."""

    setting: int = 0  # -FULL to FULL
    speed: float = 0.0  # of full speed, -1 to 1
    current: float = 0.0  # A
    temperature: float = AMBIENT_C  # degrees Celsius

    def advance(self, step_s: float, other_speed: float) -> None:
        """Advance in time. `other_speed` is the other motor's."""
        target = self.setting / FULL
        missing = abs(target - self.speed)
        skidding = abs(self.speed - other_speed) / 2
        self.current = (
            ROLLING_CURRENT_A * abs(self.speed) + TURNING_CURRENT_A * skidding + ACCELERATION_CURRENT_A * missing
        )
        self.speed = target + (self.speed - target) * math.exp(-step_s / MOTOR_TIME_CONSTANT_S)
        heating = HEATING_K_PER_A2_S * self.current**2
        settled = AMBIENT_C + heating / COOLING_PER_S
        self.temperature = settled + (self.temperature - settled) * math.exp(-COOLING_PER_S * step_s)


@dataclass(slots=True)
class Vehicle:
    """The robot's state. It starts at the origin facing along x; heading increases to the left."""

    chassis: Chassis = field(default_factory=Chassis)
    left: Motor = field(default_factory=Motor)
    right: Motor = field(default_factory=Motor)
    is_light_on: bool = False
    time: float = 0.0  # s
    x: float = 0.0  # m
    y: float = 0.0  # m
    heading: float = 0.0  # rad
    charge: float = 1.0  # of the battery's capacity

    @property
    def current(self) -> float:
        """Battery current, A."""
        return IDLE_CURRENT_A + self.left.current + self.right.current

    @property
    def voltage(self) -> float:
        """Battery voltage under load, V."""
        unloaded = self.chassis.full_voltage * (EMPTY_FRACTION + (1 - EMPTY_FRACTION) * self.charge)
        return unloaded - BATTERY_RESISTANCE_OHM * self.current

    @property
    def speed(self) -> float:
        """Forward, m/s."""
        return self.chassis.max_speed * (self.left.speed + self.right.speed) / 2

    @property
    def turn_rate(self) -> float:
        """Positive to the left, rad/s."""
        return self.chassis.max_speed * (self.right.speed - self.left.speed) / self.chassis.wheel_separation

    def drive(self, left: int, right: int) -> None:
        """Set both motors, clamped to full speed."""
        self.left.setting, self.right.setting = (max(-FULL, min(FULL, setting)) for setting in (left, right))

    def stop(self) -> None:
        self.drive(0, 0)

    def advance(self, step_s: float) -> None:
        """Advance along an arc, and discharge the battery."""
        if self.charge == 0.0:
            self.stop()
        speeds = self.left.speed, self.right.speed
        self.left.advance(step_s, speeds[1])
        self.right.advance(step_s, speeds[0])
        turned = self.turn_rate * step_s
        # The chord of the arc, whose direction is halfway between the headings at its ends.
        chord = self.speed * step_s * (math.sin(turned / 2) / (turned / 2) if turned else 1.0)
        self.x += chord * math.cos(self.heading + turned / 2)
        self.y += chord * math.sin(self.heading + turned / 2)
        self.heading = math.remainder(self.heading + turned, math.tau)
        self.charge = max(0.0, self.charge - self.current * step_s / 3600 / self.chassis.capacity)
        self.time += step_s
