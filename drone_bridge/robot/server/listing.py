# SPDX-License-Identifier: Apache-2.0
"""The lists of subsystems and sensors for drivers: from parameters, or from robot_bridge's topics."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drone_bridge.msg import SensorArray, SubsystemArray
from drone_bridge.msg import Subsystem as SubsystemMessage
from drone_bridge.robot.codec import MotorSensors, Sensor, SensorType, SubsystemType
from drone_bridge.robot.device.vehicle import DrivenSubsystem
from drone_bridge.robot.topics.frames import millivolts_from_volts
from drone_bridge.robot.topics.translation import LONGEST_NAME, MEASUREMENTS
from drone_bridge.ros.topic_names import topic_token

NONE: Final = "none"
MAX_SENSORS: Final = 64
LIGHT_TOPIC: Final = "light"
_MOTOR_FIELDS: Final = {
    "battery": SensorType.BATTERY,
    "temperature": SensorType.THERMOMETER,
    "current": SensorType.AMMETER,
    "pwm": SensorType.MOTOR_PWM,
}
_TYPES_BY_TOPIC: Final = {measurement.topic: SensorType(kind) for kind, measurement in MEASUREMENTS.items()}
#: Stands for a sensor that a motor lacks, for which a list has no other representation.
_NO_SENSOR: Final = Sensor(SensorType.NULL, "none")


@dataclass(frozen=True, slots=True)
class SensorSource:
    """One sensor in the list, and the topic of its values."""

    sensor: Sensor  # without a value
    topic: str = ""  # empty for none


@dataclass(frozen=True, slots=True)
class Listing:
    """The subsystems and sensors of a robot."""

    subsystems: tuple[DrivenSubsystem, ...] = ()
    sources: tuple[SensorSource, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """Everything but who holds what; if it changes, drivers face another robot."""
        return tuple((s.type, s.name, s.motors) for s in self.subsystems), self.sources


# From parameters.


def check_topics(entries: Sequence[str]) -> str | None:
    """Return what is wrong with the parameter sensors, or None."""
    if len(entries) > MAX_SENSORS:
        return f"has {len(entries)} topics; at most {MAX_SENSORS} are allowed."
    topics = [entry.partition("=")[0] for entry in entries if entry != NONE]
    for topic in topics:
        if topic.split("/")[0] not in _TYPES_BY_TOPIC:
            return f"has {topic!r}; sensor topics must begin with one of {', '.join(_TYPES_BY_TOPIC)}."
        if not re.fullmatch(r"[a-z_]+(/[A-Za-z_][A-Za-z0-9_]*)*", topic):
            return f"has {topic!r}, which is not a topic name."
    if len(set(topics)) < len(topics):
        return f"has a topic twice: {', '.join(topics)}."
    return None


def listing_of_parameters(
    skid_steer: str, lights: Sequence[str], sensors: Sequence[str], full_voltage: float
) -> Listing:
    """Return the lists given by parameters. `full_voltage` is in V.

    The skid steer comes last: robotd's Java driver, NetRobot, can't read a list that goes on after one.
    """
    sources = [_source(entry, full_voltage) for entry in sensors if entry != NONE]
    subsystems = [DrivenSubsystem(SubsystemType.LIGHTS, name) for name in lights if name != NONE]
    if skid_steer != NONE:
        left, right = (_motor(side, sources) for side in ("left", "right"))
        subsystems.append(DrivenSubsystem(SubsystemType.SKID_STEER, skid_steer, (left, right)))
    return Listing(tuple(subsystems), tuple(sources))


def _source(entry: str, full_voltage: float) -> SensorSource:
    topic, _, name = entry.partition("=")
    kind = _TYPES_BY_TOPIC[topic.split("/")[0]]
    name = name or ("battery" if "/" not in topic else topic.rpartition("/")[2].replace("_", " "))
    full_voltage_mv = millivolts_from_volts(full_voltage) if kind == SensorType.BATTERY else None
    return SensorSource(Sensor(kind, name[:LONGEST_NAME], full_voltage_mv=full_voltage_mv), topic)


def _motor(side: str, sources: list[SensorSource]) -> MotorSensors:
    """Return the sensors of one side's motor: those whose names contain the side, and the first battery."""

    def find(kind: SensorType) -> int:
        for number, source in enumerate(sources):
            names_side = side in f"{source.topic} {source.sensor.name}".lower()
            if source.sensor.type == kind and (names_side or kind == SensorType.BATTERY):
                return number
        if sources[-1:] != [SensorSource(_NO_SENSOR)]:
            sources.append(SensorSource(_NO_SENSOR))
        return len(sources) - 1

    return MotorSensors(**{field: find(kind) for field, kind in _MOTOR_FIELDS.items()})


def light_topics(subsystems: Sequence[DrivenSubsystem]) -> dict[int, str]:
    """Return the topic of each light by its number: light for the first, light/<name> for the others."""
    lights = [number for number, subsystem in enumerate(subsystems) if subsystem.type == SubsystemType.LIGHTS]
    return {
        number: f"{LIGHT_TOPIC}/{topic_token(subsystems[number].name, f'light_{number}')}" if place else LIGHT_TOPIC
        for place, number in enumerate(lights)
    }


# From the topics of robot_bridge.


def sources_of_message(message: SensorArray) -> tuple[SensorSource, ...]:
    """Return the sensors that robot_bridge lists; unknown types become null."""
    return tuple(
        SensorSource(
            Sensor(
                SensorType(sensor.type) if sensor.type in MEASUREMENTS else SensorType.NULL,
                sensor.name,
                full_voltage_mv=_full_voltage_mv(sensor.type, sensor.full_voltage),
            ),
            sensor.topic if sensor.type in MEASUREMENTS else "",
        )
        for sensor in message.sensors
    )


def _full_voltage_mv(kind: int, full_voltage: float) -> int | None:
    if kind != SensorType.BATTERY:
        return None
    return millivolts_from_volts(full_voltage) if math.isfinite(full_voltage) else 0


def subsystems_of_message(message: SubsystemArray) -> tuple[DrivenSubsystem, ...]:
    """Return the subsystems that robot_bridge lists; those that it has not bound are not available."""
    return tuple(
        DrivenSubsystem(
            SubsystemType(subsystem.type) if subsystem.type in tuple(SubsystemType) else SubsystemType.INVALID,
            subsystem.name,
            _motors(subsystem),
            is_available=subsystem.bound,
            other_driver="" if subsystem.bound else subsystem.driver,
        )
        for subsystem in message.subsystems
    )


def is_robot_connected(message: SubsystemArray) -> bool:
    """Return whether the bridge is connected to a robot; otherwise no subsystem has a driver."""
    return any(subsystem.bound or subsystem.driver for subsystem in message.subsystems)


def _motors(subsystem: SubsystemMessage) -> tuple[MotorSensors, MotorSensors] | None:
    if subsystem.type != SubsystemType.SKID_STEER or not subsystem.has_sensors:
        return None
    left, right = (
        MotorSensors(*(getattr(subsystem, f"{side}_{field}_sensor") for field in _MOTOR_FIELDS))
        for side in ("left", "right")
    )
    return left, right
