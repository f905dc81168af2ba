# SPDX-License-Identifier: Apache-2.0
"""RobotTranslation: conversion between a robot's packets and ROS messages, and the table of topics.

Wire values are integers: thousandths (mV, mA), and hundredths of a degree Celsius. For speeds see `units`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.body_velocity import STILL
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.msg import MotorSensors, SensorArray, SensorValue, SubsystemArray
from drone_bridge.msg import Sensor as SensorMessage
from drone_bridge.msg import Subsystem as SubsystemMessage
from drone_bridge.robot import codec
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.covariances import OdometryCovariances
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.standard_rows import standard_row
from drone_bridge.ros.topics.table import MissingTopicError, Topic, TopicTable
from drone_bridge.ros.topics.topic_names import topic_token, unique_names
from drone_bridge.ros.topics.transforms import odometry_transform
from drone_bridge.ros.topics.wheel_odometry import COVARIANCES, wheel_odometry
from drone_bridge.wire.printable import printable

DISCOVERY_UDP_PORT = ParameterDeclaration(
    "discovery_port", codec.DISCOVERY_PORT, "UDP port of discovery.", range=(1, 65535)
)


#: Prefix of a line of the robot's log, added by robot_bridge and removed by robot_server.
ROBOT_LOG_PREFIX = "Robot log: "
LONGEST_NAME = 255  # characters of a name in a message
MAX_SENSORS = 64  # with topics
_MOTOR_SENSORS = codec.MotorSensors.__slots__  # kinds of sensors of a side's motor
_INT32 = range(-(2**31), 2**31)


# Sensors and subsystems.


class SensorSource(NamedTuple):
    """A listed sensor, and the topic of its values."""

    sensor: codec.Sensor  # without a value
    topic: str = ""  # empty: none


class ListedSubsystem(NamedTuple):
    """A listed subsystem, and whether the bridge has bound it."""

    subsystem: codec.Subsystem
    is_bound: bool


class RobotTranslation:
    """Conversion between a robot's packets and topics. Unknown values, and those beyond the wire's range, are None."""

    def __init__(
        self, names: FrameNames | None = None, odometry_covariances: OdometryCovariances = COVARIANCES
    ) -> None:
        """By default, frames have no prefix, and odometry has the covariances of unmeasured values."""
        self._names = names or FrameNames()
        self._frame_id = self._names.base_link
        self._odometry_covariances = odometry_covariances
        #: Numbers of the subsystems that the bridge has bound.
        self.bound: Collection[int] = ()

    # Sensor values.

    def battery(self, sensor: codec.Sensor, stamp: Time) -> BatteryState:
        """Return a battery's voltage, and its share of the full voltage as the percentage (0 to 1).

        Fields that the wire does not carry are NaN or unknown.
        """
        message = BatteryState(header=self._header(stamp), present=True, location=_name(sensor.name))
        for field in ("voltage", "temperature", "current", "charge", "capacity", "design_capacity", "percentage"):
            setattr(message, field, math.nan)
        if sensor.value is not None:
            message.voltage = sensor.value / 1000
            if sensor.full_voltage_mv and sensor.full_voltage_mv > 0:
                message.percentage = max(0.0, min(1.0, sensor.value / sensor.full_voltage_mv))
        return message

    def wire_battery(self, message: BatteryState) -> int | None:
        return _wire_value(message.voltage, 1000)

    def temperature(self, sensor: codec.Sensor, stamp: Time) -> Temperature | None:
        """Return a temperature in degrees Celsius. A variance of 0 means unknown."""
        if sensor.value is None:
            return None
        return Temperature(header=self._header(stamp), temperature=sensor.value / 100)

    def wire_temperature(self, message: Temperature) -> int | None:
        return _wire_value(message.temperature, 100)

    def current(self, sensor: codec.Sensor, stamp: Time) -> SensorValue | None:
        return self._sensor_value(sensor, 1000, "A", stamp)

    def wire_current(self, message: SensorValue) -> int | None:
        return _wire_value(message.value, 1000)

    def motor_pwm(self, sensor: codec.Sensor, stamp: Time) -> SensorValue | None:
        """Return a motor's duty cycle as a share of full speed, from -1 (full reverse) to 1."""
        return self._sensor_value(sensor, codec.FULL_SPEED, "1", stamp)

    def wire_motor_pwm(self, message: SensorValue) -> int | None:
        return _wire_value(message.value, codec.FULL_SPEED)

    def _sensor_value(self, sensor: codec.Sensor, one: int, unit: str, stamp: Time) -> SensorValue | None:
        if sensor.value is None:
            return None
        return SensorValue(header=self._header(stamp), name=_name(sensor.name), value=sensor.value / one, unit=unit)

    # The lists.

    def sensor_topics(self, info: codec.SensorInfo) -> list[str]:
        """Return the topic of each sensor. Empty: none."""
        return sensor_topics(info.sensors)

    def sensors(self, info: codec.SensorInfo, stamp: Time) -> SensorArray:
        message = SensorArray(header=self._header(stamp), layout=info.layout.value, unreadable=info.missing)
        message.sensors = [
            SensorMessage(
                id=number,
                type=int(sensor.type),
                name=_name(sensor.name),
                topic=topic,
                full_voltage=math.nan if sensor.full_voltage_mv is None else sensor.full_voltage_mv / 1000,
            )
            for number, (sensor, topic) in enumerate(zip(info.sensors, self.sensor_topics(info), strict=True))
        ]
        return message

    def wire_sensors(self, message: SensorArray) -> tuple[SensorSource, ...]:
        """Return the sensors. Unknown types become null."""
        return tuple(map(_source, message.sensors))

    def subsystems(self, info: codec.SubsystemInfo, stamp: Time) -> SubsystemArray:
        message = SubsystemArray(header=self._header(stamp), unreadable=info.missing)
        message.subsystems = [
            _subsystem(number, subsystem, number in self.bound) for number, subsystem in enumerate(info.subsystems)
        ]
        return message

    def wire_subsystems(self, message: SubsystemArray) -> tuple[ListedSubsystem, ...]:
        return tuple(ListedSubsystem(_wire_subsystem(each), each.bound) for each in message.subsystems)

    # Dead reckoning, since the robot reports no odometry.

    def odometry(self, measured: Measurement, stamp: Time) -> Odometry | None:
        if measured.position is None or measured.yaw is None:
            return None
        pose, velocity = PlanarPose(*measured.position[:2], measured.yaw), measured.velocity or STILL
        return wheel_odometry(pose, velocity, stamp, self._names, self._odometry_covariances)

    def odometry_transform(self, measured: Measurement, stamp: Time) -> TFMessage | None:
        odometry = self.odometry(measured, stamp)
        return TFMessage(transforms=[odometry_transform(odometry)]) if odometry else None

    def _header(self, stamp: Time) -> Header:
        return Header(stamp=stamp, frame_id=self._frame_id)

    # Packets that are assembled from several topics.

    def parts(self, packet: Any) -> Iterator[tuple[str, Any]]:
        """Yield the topics that depend on the robot's parts, each with its sensor."""
        if isinstance(packet, codec.SensorInfo):
            for topic, sensor in zip(self.sensor_topics(packet), packet.sensors, strict=True):
                if topic:
                    yield topic, sensor

    def assemble_sensors(self, value: Callable[[str], Any], stamp: Time) -> codec.SensorInfo:
        """Return the list with the known values. Raises MissingTopicError."""
        del stamp
        sources: tuple[SensorSource, ...] | None = value("sensors")
        if sources is None:
            raise MissingTopicError("the list is on topic sensors")
        return codec.SensorInfo(tuple(replace(each.sensor, value=value(each.topic)) for each in sources))

    def assemble_subsystems(self, value: Callable[[str], Any], stamp: Time) -> codec.SubsystemInfo:
        """Return the list. Raises MissingTopicError."""
        del stamp
        listed: tuple[ListedSubsystem, ...] | None = value("subsystems")
        if listed is None:
            raise MissingTopicError("the list is on topic subsystems")
        return codec.SubsystemInfo(tuple(each.subsystem for each in listed))


_T = RobotTranslation
_row = partial(standard_row, Measurement)
_list = partial(Topic, qos=latched, requested=latched)
_sensor = partial(Topic, of=codec.Sensor)
_battery = partial(_sensor, message=BatteryState, to_ros=_T.battery, from_ros=_T.wire_battery, qos=latched)
_value = partial(_sensor, message=SensorValue)
TOPICS = (
    _list(
        "sensors",
        SensorArray,
        codec.SensorInfo,
        _T.sensors,
        _T.wire_sensors,
        meaning="the robot's list, with the topic of each",
    ),
    _list(
        "subsystems",
        SubsystemArray,
        codec.SubsystemInfo,
        _T.subsystems,
        _T.wire_subsystems,
        meaning="the robot's list, with the driver of each",
    ),
    _battery("battery_state", meaning="the first battery's voltage, and its share of the full voltage"),
    _battery("battery_state/{name}", meaning="the same for each further battery"),
    _sensor(
        "temperature/{name}",
        Temperature,
        to_ros=_T.temperature,
        from_ros=_T.wire_temperature,
        meaning="temperature of each thermometer, degrees Celsius",
    ),
    _value("current/{name}", to_ros=_T.current, from_ros=_T.wire_current, meaning="current of each ammeter, A"),
    _value(
        "motor_pwm/{name}",
        to_ros=_T.motor_pwm,
        from_ros=_T.wire_motor_pwm,
        meaning="each motor's duty cycle, from -1 to 1",
    ),
    _row("odom", _T.odometry, None, "dead reckoning from the commanded speeds"),
    _row("/tf", _T.odometry_transform, qos=lambda: QoSProfile(depth=100), if_parameter="publish_tf"),
)
TABLE = TopicTable(
    TOPICS,
    RobotTranslation,
    {codec.SensorInfo: _T.assemble_sensors, codec.SubsystemInfo: _T.assemble_subsystems},
    parts=_T.parts,
)
#: First level of the topics of each type of sensor.
TOPIC_OF_TYPE: dict[int, str] = {
    codec.SensorType.BATTERY: "battery_state",
    codec.SensorType.THERMOMETER: "temperature",
    codec.SensorType.AMMETER: "current",
    codec.SensorType.MOTOR_PWM: "motor_pwm",
}


def sensor_topics(sensors: Sequence[codec.Sensor], most: int = MAX_SENSORS) -> list[str]:
    """Return the topic of each sensor. Empty for unknown types, and beyond `most`.

    The topic of the first battery has no suffix, since programs expect a robot's battery there.
    """
    wanted: list[tuple[int, str]] = []
    has_battery = False
    for number, sensor in enumerate(sensors):
        kind = TOPIC_OF_TYPE.get(sensor.type)
        if kind is None or len(wanted) >= most:
            continue
        is_first_battery = sensor.type == codec.SensorType.BATTERY and not has_battery
        has_battery |= is_first_battery
        name = kind if is_first_battery else f"{kind}/{topic_token(sensor.name, f'sensor_{number}')}"
        wanted.append((number, name))
    topics = [""] * len(sensors)
    for (number, _), name in zip(wanted, unique_names(name for _, name in wanted), strict=True):
        topics[number] = name
    return topics


def _source(message: SensorMessage) -> SensorSource:
    if message.type not in TOPIC_OF_TYPE:
        return SensorSource(codec.Sensor(codec.SensorType.NULL, message.name))
    full_voltage_mv = None
    if message.type == codec.SensorType.BATTERY:
        full_voltage_mv = _wire_value(message.full_voltage, 1000) or 0
    return SensorSource(
        codec.Sensor(codec.SensorType(message.type), message.name, None, full_voltage_mv), message.topic
    )


def _subsystem(number: int, subsystem: codec.Subsystem, is_bound: bool) -> SubsystemMessage:
    motors = [motor for motor in (subsystem.left, subsystem.right) if motor]
    return SubsystemMessage(
        id=number,
        type=int(subsystem.type),
        name=_name(subsystem.name),
        driver=_name(subsystem.driver),
        bound=is_bound,
        motors=[MotorSensors(**{kind: getattr(motor, kind) for kind in _MOTOR_SENSORS}) for motor in motors],
    )


def _wire_subsystem(message: SubsystemMessage) -> codec.Subsystem:
    kind = (
        codec.SubsystemType(message.type) if message.type in tuple(codec.SubsystemType) else codec.SubsystemType.INVALID
    )
    left = right = None
    if kind == codec.SubsystemType.SKID_STEER and len(message.motors) == 2:
        left, right = (
            codec.MotorSensors(*(getattr(motor, each) for each in _MOTOR_SENSORS)) for motor in message.motors
        )
    return codec.Subsystem(kind, message.name, message.driver, left, right)


def _wire_value(value: float, one: int) -> int | None:
    if not math.isfinite(value):
        return None
    converted = round(value * one)
    return converted if converted in _INT32 else None


def _name(text: str) -> str:
    return printable(text, LONGEST_NAME)
