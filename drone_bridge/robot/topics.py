# SPDX-License-Identifier: Apache-2.0
"""What a robot's packets say on topics, and what topics say in its packets.

The wire counts in whole thousandths (mV, mA) and hundredths (degrees Celsius); a side's speed is from -2048 to 2048,
positive forward.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Float32

from drone_bridge.msg import Sensor as SensorMessage
from drone_bridge.msg import SensorArray, SensorValue, SubsystemArray
from drone_bridge.msg import Subsystem as SubsystemMessage
from drone_bridge.robot.codec import (
    DISCOVERY_PORT,
    FULL_SPEED,
    Sensor,
    SensorInfo,
    SensorType,
    Subsystem,
    SubsystemInfo,
)
from drone_bridge.ros import frames
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.topic_names import topic_token, unique_names
from drone_bridge.wire.layouts import printable

SKID_STEER = (
    ParameterDeclaration("wheel_separation", 0.5, "Distance between left and right wheels, m.", range=(0.01, 10.0)),
    ParameterDeclaration("max_wheel_speed", 1.0, "Speed of one side at full command, m/s.", range=(0.01, 100.0)),
)

DISCOVERY_UDP_PORT = ParameterDeclaration(
    "discovery_port", DISCOVERY_PORT, "The UDP port used for discovery.", range=(1, 65535)
)


# The robot protocol's units.


# The robot protocol counts in whole thousandths and hundredths.


def volts_from_millivolts(millivolts: int) -> float:
    """Return a voltage in V."""
    return millivolts / 1000


def millivolts_from_volts(volts: float) -> int:
    """Return a finite voltage as it is on the wire."""
    return round(volts * 1000)


def amperes_from_milliamperes(milliamperes: int) -> float:
    """Return a current in A."""
    return milliamperes / 1000


def milliamperes_from_amperes(amperes: float) -> int:
    """Return a finite current as it is on the wire."""
    return round(amperes * 1000)


def celsius_from_hundredths(hundredths: int) -> float:
    """Return a temperature in degrees Celsius."""
    return hundredths / 100


def hundredths_from_celsius(celsius: float) -> int:
    """Return a finite temperature as it is on the wire."""
    return round(celsius * 100)


# Converts commands to skid steer speeds, and the robot's packets to ROS messages.


BATTERY_TOPIC = "battery_state"
#: What robot_bridge puts before a line of the robot's log, and robot_server takes away again.
ROBOT_SAYS = "The robot says: "
LONGEST_NAME = 255  # characters of a name in a message
_INT32 = range(-(2**31), 2**31)
_ENORMOUS = 1e9  # m/s or rad/s: beyond it sums may be infinite


class Speeds(NamedTuple):
    """The speeds of a skid steer's sides as on the wire: -FULL_SPEED to FULL_SPEED, positive forward."""

    left: int
    right: int


STOPPED = Speeds(0, 0)


@dataclass(frozen=True, slots=True)
class SkidSteer:
    """The geometry and maximum speed of a robot."""

    separation: float  # m between the sides
    max_speed: float  # m/s of a side at full speed

    def speeds(self, twist: Twist) -> tuple[Speeds, bool]:
        """Return a finite cmd_vel as speeds on the wire, and whether it was within the robot's limits.

        linear.x is forward, angular.z a left turn (REP 103); the rest is not on the wire. What is too fast is slowed
        down on both sides alike, so that the path keeps its curvature.
        """
        forward, turn = twist.linear.x, twist.angular.z
        if (excess := max(abs(forward), abs(turn)) / _ENORMOUS) > 1:
            forward, turn = forward / excess, turn / excess
        left, right = frames.wheel_speeds_from_body(forward, turn, self.separation)
        excess = max(1.0, abs(left) / self.max_speed, abs(right) / self.max_speed)
        unit = FULL_SPEED / (excess * self.max_speed)
        return Speeds(round(left * unit), round(right * unit)), excess <= 1 + 1e-9

    def motion(self, speeds: Speeds) -> tuple[float, float]:
        """Return linear x in m/s and angular z in rad/s for these speeds."""
        left, right = (self.max_speed * speed / FULL_SPEED for speed in speeds)
        return frames.body_from_wheel_speeds(left, right, self.separation)

    def twist(self, speeds: Speeds) -> Twist:
        """Return speeds on the wire as a cmd_vel, the inverse of `speeds`."""
        twist = Twist()
        twist.linear.x, twist.angular.z = self.motion(speeds)
        return twist


# Sensors.


def battery_state(sensor: Sensor, value: int | None, stamp: Time, frame_id: str) -> BatteryState:
    """Return a battery's voltage, and its share of the full voltage as the percentage (0 to 1).

    What the wire does not carry is NaN or unknown.
    """
    message = BatteryState(present=True, location=_name(sensor.name))
    for field in ("voltage", "temperature", "current", "charge", "capacity", "design_capacity", "percentage"):
        setattr(message, field, math.nan)
    if value is not None:
        message.voltage = volts_from_millivolts(value)
        if sensor.full_voltage_mv and sensor.full_voltage_mv > 0:
            message.percentage = max(0.0, min(1.0, value / sensor.full_voltage_mv))
    _set_header(message, stamp, frame_id)
    return message


def temperature(_: Sensor, value: int, stamp: Time, frame_id: str) -> Temperature:
    """Return a thermometer's value in degrees Celsius; the variance 0 means that it is unknown."""
    message = Temperature(temperature=celsius_from_hundredths(value))
    _set_header(message, stamp, frame_id)
    return message


def current(sensor: Sensor, value: int, stamp: Time, frame_id: str) -> SensorValue:
    """Return an ammeter's value in A."""
    return _sensor_value(sensor, amperes_from_milliamperes(value), "A", stamp, frame_id)


def motor_pwm(sensor: Sensor, value: int, stamp: Time, frame_id: str) -> SensorValue:
    """Return a motor's duty cycle as a share of full speed, from -1 for full reverse to 1."""
    return _sensor_value(sensor, value / FULL_SPEED, "1", stamp, frame_id)


# The same the other way: the value on the wire, None for what is not known or does not fit it.


def battery_value(message: BatteryState) -> int | None:
    """Return a battery's voltage in mV."""
    return _wire_value(millivolts_from_volts, message.voltage)


def temperature_value(message: Temperature) -> int | None:
    """Return a temperature in hundredths of a degree Celsius."""
    return _wire_value(hundredths_from_celsius, message.temperature)


def current_value(message: SensorValue | Float32) -> int | None:
    """Return a current in mA."""
    return _wire_value(milliamperes_from_amperes, _bare_value(message))


def motor_pwm_value(message: SensorValue | Float32) -> int | None:
    """Return a motor's duty cycle, FULL_SPEED for full speed forward."""
    return _wire_value(lambda share: round(share * FULL_SPEED), _bare_value(message))


def _bare_value(message: SensorValue | Float32) -> float:
    return float(message.value if isinstance(message, SensorValue) else message.data)


def _wire_value(convert: Callable[[float], int], value: float) -> int | None:
    if not math.isfinite(value):
        return None
    converted = convert(value)
    return converted if converted in _INT32 else None


def _sensor_value(sensor: Sensor, value: float, unit: str, stamp: Time, frame_id: str) -> SensorValue:
    message = SensorValue(name=_name(sensor.name), value=value, unit=unit)
    _set_header(message, stamp, frame_id)
    return message


def _bare(make: Callable[[Sensor, int, Time, str], SensorValue]) -> Callable[[Sensor, int, Time, str], Float32]:
    return lambda *reading: Float32(data=make(*reading).value)


class Measurement(NamedTuple):
    """How the values of one type of sensor are published."""

    topic: str
    message_type: type
    message: Callable[[Sensor, Any, Time, str], Any]
    value: Callable[[Any], int | None]  # the other way
    has_own_topic: bool = False  # the first one of its type, without its name


MEASUREMENTS: dict[int, Measurement] = {
    SensorType.BATTERY: Measurement(BATTERY_TOPIC, BatteryState, battery_state, battery_value, has_own_topic=True),
    SensorType.THERMOMETER: Measurement("temperature", Temperature, temperature, temperature_value),
    SensorType.AMMETER: Measurement("current", SensorValue, current, current_value),
    SensorType.MOTOR_PWM: Measurement("motor_pwm", SensorValue, motor_pwm, motor_pwm_value),
}
#: The same without headers, which is what some plotting tools want.
BARE_MEASUREMENTS: dict[int, Measurement] = {
    **MEASUREMENTS,
    SensorType.AMMETER: Measurement("current", Float32, _bare(current), current_value),
    SensorType.MOTOR_PWM: Measurement("motor_pwm", Float32, _bare(motor_pwm), motor_pwm_value),
}


def sensor_topics(sensors: Sequence[Sensor], most: int) -> list[str]:
    """Return the topic of each sensor, empty for unknown types and for more than `most`."""
    wanted: list[tuple[int, str]] = []
    types_seen = set()
    for number, sensor in enumerate(sensors):
        measurement = MEASUREMENTS.get(sensor.type)
        if measurement is None or len(wanted) >= most:
            continue
        if measurement.has_own_topic and sensor.type not in types_seen:
            name = measurement.topic
        else:
            name = f"{measurement.topic}/{topic_token(sensor.name, f'sensor_{number}')}"
        types_seen.add(sensor.type)
        wanted.append((number, name))
    topics = [""] * len(sensors)
    for (number, _), name in zip(wanted, unique_names(name for _, name in wanted), strict=True):
        topics[number] = name
    return topics


def sensor_array(info: SensorInfo, topics: Sequence[str], stamp: Time, frame_id: str) -> SensorArray:
    """Return the list of sensors with their topics."""
    message = SensorArray(layout=info.layout.value, unreadable=info.missing)
    message.sensors = [
        SensorMessage(
            id=number,
            type=sensor.type,
            name=_name(sensor.name),
            topic=topic,
            full_voltage=(
                math.nan if sensor.full_voltage_mv is None else volts_from_millivolts(sensor.full_voltage_mv)
            ),
        )
        for number, (sensor, topic) in enumerate(zip(info.sensors, topics, strict=True))
    ]
    _set_header(message, stamp, frame_id)
    return message


# Subsystems.


def subsystem_array(
    info: SubsystemInfo, drivers: Mapping[int, str], bound: Collection[int], stamp: Time, frame_id: str
) -> SubsystemArray:
    """Return the list of subsystems with their drivers; those of this bridge are marked as bound."""
    message = SubsystemArray(unreadable=info.missing)
    message.subsystems = [
        _subsystem(number, replace(subsystem, driver=drivers.get(number, "")), number in bound)
        for number, subsystem in enumerate(info.subsystems)
    ]
    _set_header(message, stamp, frame_id)
    return message


def _subsystem(number: int, subsystem: Subsystem, is_bound: bool) -> SubsystemMessage:
    message = SubsystemMessage(
        id=number,
        type=subsystem.type,
        name=_name(subsystem.name),
        driver=_name(subsystem.driver),
        bound=is_bound,
        has_sensors=subsystem.left is not None,
    )
    for side, sensors in (("left", subsystem.left), ("right", subsystem.right)):
        if sensors:
            for kind in sensors.__slots__:
                setattr(message, f"{side}_{kind}_sensor", getattr(sensors, kind))
    return message


def _name(text: str) -> str:
    return printable(text, LONGEST_NAME)


def _set_header(message: Any, stamp: Time, frame_id: str) -> None:
    message.header.stamp = stamp
    message.header.frame_id = frame_id
