# SPDX-License-Identifier: Apache-2.0
"""Listing of a robot's parts with the topics of its sensors, from parameters or from robot_bridge's lists."""

import re
from collections.abc import Iterable, Sequence

from drone_bridge.msg import SubsystemArray
from drone_bridge.robot import codec
from drone_bridge.robot.topics import LONGEST_NAME, MAX_SENSORS, TOPIC_OF_TYPE, ListedSubsystem, SensorSource
from drone_bridge.robot.vehicle.device.vehicle import DrivenSubsystem
from drone_bridge.robot.vehicle.session.listing import Listing
from drone_bridge.ros.topics.topic_names import topic_token

NONE = "none"
LIGHT_TOPIC = "light"
_MOTOR_FIELDS = {
    "battery": codec.SensorType.BATTERY,
    "temperature": codec.SensorType.THERMOMETER,
    "current": codec.SensorType.AMMETER,
    "pwm": codec.SensorType.MOTOR_PWM,
}
_TYPES_BY_TOPIC = {topic: codec.SensorType(kind) for kind, topic in TOPIC_OF_TYPE.items()}
#: Placeholder for a sensor that a motor lacks. A list can't represent it otherwise.
_NO_SENSOR = codec.Sensor(codec.SensorType.NULL, "none")


# From parameters.


def check_topics(entries: Sequence[str]) -> str | None:
    """Return the problem of the parameter sensors, or None."""
    if len(entries) > MAX_SENSORS:
        return f"has {len(entries)} topics; at most {MAX_SENSORS} are allowed."
    topics = [entry.partition("=")[0] for entry in entries if entry != NONE]
    for topic in topics:
        if topic.split("/")[0] not in _TYPES_BY_TOPIC:
            return f"has {topic!r}; sensor topics must begin with one of {', '.join(_TYPES_BY_TOPIC)}."
        if not re.fullmatch(r"[a-z_]+(/[A-Za-z_][A-Za-z0-9_]*)*", topic):
            return f"has {topic!r}, which is not a topic name."
    if len(set(topics)) < len(topics):
        return f"has duplicate topics: {', '.join(topics)}."
    return None


def listing_from_parameters(
    skid_steer: str, lights: Sequence[str], sensors: Sequence[str], full_voltage: float
) -> tuple[Listing, tuple[SensorSource, ...]]:
    """Return the parts and sensor topics given by parameters. `full_voltage` is in V.

    The skid steer is last: robotd's Java driver, NetRobot, can't read list entries after one.
    """
    sources = [_source(entry, full_voltage) for entry in sensors if entry != NONE]
    subsystems = [DrivenSubsystem(codec.SubsystemType.LIGHTS, name) for name in lights if name != NONE]
    if skid_steer != NONE:
        left, right = (_motor(side, sources) for side in ("left", "right"))
        subsystems.append(DrivenSubsystem(codec.SubsystemType.SKID_STEER, skid_steer, (left, right)))
    return Listing(tuple(subsystems), tuple(source.sensor for source in sources)), tuple(sources)


def _source(entry: str, full_voltage: float) -> SensorSource:
    topic, _, name = entry.partition("=")
    kind = _TYPES_BY_TOPIC[topic.split("/")[0]]
    name = name or ("battery" if "/" not in topic else topic.rpartition("/")[2].replace("_", " "))
    full_voltage_mv = round(1000 * full_voltage) if kind == codec.SensorType.BATTERY else None
    return SensorSource(codec.Sensor(kind, name[:LONGEST_NAME], full_voltage_mv=full_voltage_mv), topic)


def _motor(side: str, sources: list[SensorSource]) -> codec.MotorSensors:
    """Return the sensors of one side's motor: those whose names contain the side, and the first battery."""

    def find(kind: codec.SensorType) -> int:
        for number, source in enumerate(sources):
            names_side = side in f"{source.topic} {source.sensor.name}".lower()
            if source.sensor.type == kind and (names_side or kind == codec.SensorType.BATTERY):
                return number
        if sources[-1:] != [SensorSource(_NO_SENSOR)]:
            sources.append(SensorSource(_NO_SENSOR))
        return len(sources) - 1

    return codec.MotorSensors(**{field: find(kind) for field, kind in _MOTOR_FIELDS.items()})


def light_topics(subsystems: Sequence[DrivenSubsystem]) -> dict[int, str]:
    """Return the topic of each light by its number: light for the first, light/<name> for the others."""
    lights = [number for number, subsystem in enumerate(subsystems) if subsystem.type == codec.SubsystemType.LIGHTS]
    return {
        number: f"{LIGHT_TOPIC}/{topic_token(subsystems[number].name, f'light_{number}')}" if place else LIGHT_TOPIC
        for place, number in enumerate(lights)
    }


# From the topics of robot_bridge.


def drivable_subsystems(listed: Iterable[ListedSubsystem]) -> tuple[DrivenSubsystem, ...]:
    """Return the subsystems that robot_bridge lists. Those that it has not bound are not available."""
    return tuple(
        DrivenSubsystem(
            codec.SubsystemType(subsystem.type),
            subsystem.name,
            (subsystem.left, subsystem.right) if subsystem.left and subsystem.right else None,
            is_available=is_bound,
            other_driver="" if is_bound else subsystem.driver,
        )
        for subsystem, is_bound in listed
    )


def is_robot_connected(message: SubsystemArray) -> bool:
    """Return whether the bridge is connected to a robot. If not, no subsystem has a driver."""
    return any(subsystem.bound or subsystem.driver for subsystem in message.subsystems)
