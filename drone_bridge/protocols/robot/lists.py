# SPDX-License-Identifier: Apache-2.0
"""The robot protocol's lists: what there is to drive (0x02), what is sensed (0x07) and the readings (0x05).

Their layouts differ from program to program, and nothing on the wire tells which one is meant. So a list is read
strictly in each layout that is known to be spoken, and the one that ends exactly at the packet's end is it.

An entry of a type that is not known ends what can be read, as nothing tells its size: the rest stays `opaque`. It is
believed only if the names up to it look like text, else any garbage would pass for it.
"""

import struct
from collections.abc import Callable
from dataclasses import astuple, dataclass
from enum import Enum, IntEnum
from typing import Final, TypeVar

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.robot.wire import MisfitError, Reader, pack, pack_text

_UINT8: Final = struct.Struct(">B")
_INT16: Final = struct.Struct(">h")
_UINT16: Final = struct.Struct(">H")
_INT32: Final = struct.Struct(">i")
_TWO_INT32: Final = struct.Struct(">ii")
_MOTOR_SENSORS: Final = struct.Struct(">4H")
_SMALLEST_SUBSYSTEM: Final = 1 + 2 + 2  # bytes: type, two empty strings
_SMALLEST_SENSOR: Final = 2 + 2  # bytes: type, an empty string
_HIGHEST_TYPE: Final = 0x7FFF  # of a sensor: what the document's int16 can say
_MILLIVOLTS_PER_VOLT: Final = 1000

ListT = TypeVar("ListT")


class SubsystemType(IntEnum):
    """What a subsystem is; others may come."""

    INVALID = 0
    SKID_STEER = 1
    LIGHTS = 2


class SensorType(IntEnum):
    """What a sensor measures; others may come."""

    NULL = 0
    BATTERY = 1
    THERMOMETER = 2
    AMMETER = 3
    MOTOR_PWM = 4


_SUBSYSTEM_TYPES: Final = frozenset(SubsystemType)
KNOWN_SENSOR_TYPES: Final = frozenset(SensorType)


class SensorLayout(str, Enum):
    """How a list of sensors (0x07) is laid out."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # the type is an int32, and only batteries have a value: full voltage in whole volts


@dataclass(frozen=True, slots=True)
class MotorSensors:
    """The sensors of one side's motor, by their places in the list of sensors."""

    battery: int
    temperature: int
    current: int
    pwm: int


@dataclass(frozen=True, slots=True)
class Subsystem:
    """Something that a driver can bind."""

    type: int  # a SubsystemType, or another number
    name: str
    driver: str = ""  # who has it; empty when nobody has
    left: MotorSensors | None = None  # of a skid steer, unless the robot speaks protocol 1
    right: MotorSensors | None = None


@dataclass(frozen=True, slots=True)
class SubsystemInfo:
    """0x02: what there is to bind. A subsystem's id is its place in the list."""

    subsystems: tuple[Subsystem, ...]
    opaque: bytes = b""  # from the value of the first subsystem of an unknown type on, which is the last one listed
    missing: int = 0  # how many more subsystems the opaque bytes hold
    has_replacements: bool = False

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        _check_count(len(self.subsystems), self.missing, "subsystems")
        parts = [pack(_UINT16, "The number of subsystems", len(self.subsystems) + self.missing)]
        for subsystem in self.subsystems:
            parts.append(pack(_UINT8, "The type of a subsystem", subsystem.type))
            parts.append(pack_text(subsystem.name, "The name of a subsystem"))
            parts.append(pack_text(subsystem.driver, "The name of a driver"))
            if (subsystem.left is None) != (subsystem.right is None):
                raise LocalProtocolError("A subsystem has the sensors of either both sides or none.")
            if subsystem.type != SubsystemType.SKID_STEER and subsystem.left:
                raise LocalProtocolError(f"Only a skid steer has motors, not a subsystem of type {subsystem.type}.")
            for motor in (subsystem.left, subsystem.right):
                if motor:
                    parts.append(pack(_MOTOR_SENSORS, "The sensors of a motor", *astuple(motor)))
        return b"".join((*parts, self.opaque))

    @classmethod
    def decode(cls, payload: bytes) -> "SubsystemInfo":
        """Read a payload in the layout of protocol 2 or, without the motors' sensors, 1. Raises MisfitError."""
        return _best(
            payload,
            lambda reader: cls._read(reader, has_sensors=True),
            lambda reader: cls._read(reader, has_sensors=False),
            fallback=lambda reader: cls._read(reader, has_sensors=True, may_be_opaque=True),
        )

    @classmethod
    def _read(cls, reader: Reader, has_sensors: bool, may_be_opaque: bool = False) -> "SubsystemInfo":
        count = reader.number(_UINT16)
        subsystems = []
        for missing in reversed(range(count)):
            kind = reader.number(_UINT8)
            name, driver = reader.text(), reader.text()
            left = right = None
            if kind == SubsystemType.SKID_STEER and has_sensors:
                left, right = (MotorSensors(*reader.numbers(_MOTOR_SENSORS)) for _ in range(2))
            subsystems.append(Subsystem(kind, name, driver, left, right))
            if may_be_opaque and kind not in _SUBSYSTEM_TYPES:
                opaque = _opaque(reader, missing * _SMALLEST_SUBSYSTEM)
                return cls(tuple(subsystems), opaque, missing, reader.has_replacements)
        reader.expect_end()
        return cls(tuple(subsystems), has_replacements=reader.has_replacements)


@dataclass(frozen=True, slots=True)
class Sensor:
    """Something that is measured. None is what the robot does not tell."""

    type: int  # a SensorType, or another number
    name: str
    value: int | None = None  # mV, hundredths of a degree Celsius, mA, or -2048 to 2048, by the type
    full_voltage_mv: int | None = None  # of a battery


@dataclass(frozen=True, slots=True)
class SensorInfo:
    """0x07: what is measured. A sensor's id is its place in the list."""

    sensors: tuple[Sensor, ...]
    layout: SensorLayout = SensorLayout.DOCUMENT
    opaque: bytes = b""  # from the value of the first sensor of an unknown type on, which is the last one listed
    missing: int = 0  # how many more sensors the opaque bytes hold
    has_replacements: bool = False

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        _check_count(len(self.sensors), self.missing, "sensors")
        parts = [pack(_UINT16, "The number of sensors", len(self.sensors) + self.missing)]
        type_layout = _INT16 if self.layout is SensorLayout.DOCUMENT else _INT32
        for sensor in self.sensors:
            parts.append(pack(type_layout, "The type of a sensor", sensor.type))
            parts.append(pack_text(sensor.name, "The name of a sensor"))
            parts.append(self._encode_value(sensor))
        return b"".join((*parts, self.opaque))

    def _encode_value(self, sensor: Sensor) -> bytes:
        def known(value: int | None, meaning: str) -> int:
            if value is None:
                raise LocalProtocolError(f"{meaning} of {sensor.name!r} is unknown, and the layout carries it.")
            return value

        if self.layout is SensorLayout.ROBOTD_1_2:
            if sensor.type != SensorType.BATTERY:
                return b""
            volts, remainder = divmod(known(sensor.full_voltage_mv, "The full voltage"), _MILLIVOLTS_PER_VOLT)
            if remainder:
                raise LocalProtocolError(f"The full voltage of {sensor.name!r} has to be whole volts in this layout.")
            return pack(_INT32, "The full voltage", volts)
        if sensor.type == SensorType.NULL or sensor.type not in KNOWN_SENSOR_TYPES:
            return b""
        value = pack(_INT32, "The value", known(sensor.value, "The value"))
        if sensor.type == SensorType.BATTERY:
            return pack(_INT32, "The full voltage", known(sensor.full_voltage_mv, "The full voltage")) + value
        return value

    @classmethod
    def decode(cls, payload: bytes) -> "SensorInfo":
        """Read a payload in the document's layout or that of robotd 1.2. Raises MisfitError."""
        return _best(
            payload,
            cls._read_document,
            cls._read_robotd,
            fallback=lambda reader: cls._read_document(reader, may_be_opaque=True),
        )

    @classmethod
    def _read_document(cls, reader: Reader, may_be_opaque: bool = False) -> "SensorInfo":
        layout = SensorLayout.DOCUMENT
        count = reader.number(_UINT16)
        sensors: list[Sensor] = []
        for missing in reversed(range(count)):
            kind, name = reader.number(_INT16), reader.text()
            if kind == SensorType.BATTERY:
                full_voltage_mv, value = reader.numbers(_TWO_INT32)
                sensors.append(Sensor(kind, name, value, full_voltage_mv))
            elif kind == SensorType.NULL:
                sensors.append(Sensor(kind, name))
            elif kind in KNOWN_SENSOR_TYPES:
                sensors.append(Sensor(kind, name, reader.number(_INT32)))
            elif may_be_opaque:
                sensors.append(Sensor(kind, name))
                opaque = _opaque(reader, missing * _SMALLEST_SENSOR)
                return cls(tuple(sensors), layout, opaque, missing, reader.has_replacements)
            else:
                raise MisfitError(f"the type {kind} of sensor {len(sensors)} is unknown")
        reader.expect_end()
        return cls(tuple(sensors), layout, has_replacements=reader.has_replacements)

    @classmethod
    def _read_robotd(cls, reader: Reader) -> "SensorInfo":
        """Read types that are not known as well: here they have no value."""
        sensors: list[Sensor] = []
        for _ in range(reader.number(_UINT16)):
            kind = reader.number(_INT32)
            if not 0 <= kind <= _HIGHEST_TYPE:
                raise MisfitError(f"the type {kind} of sensor {len(sensors)} is none")
            name = reader.text()
            is_battery = kind == SensorType.BATTERY
            full_voltage_mv = reader.number(_INT32) * _MILLIVOLTS_PER_VOLT if is_battery else None
            sensors.append(Sensor(kind, name, full_voltage_mv=full_voltage_mv))
        reader.expect_end()
        return cls(tuple(sensors), SensorLayout.ROBOTD_1_2, has_replacements=reader.has_replacements)


@dataclass(frozen=True, slots=True)
class SensorReading:
    """The newest value of one sensor."""

    sensor: int  # its place in the list of sensors
    value: int  # in the unit of its type, see Sensor


@dataclass(frozen=True, slots=True)
class SensorUpdate:
    """0x05: readings."""

    readings: tuple[SensorReading, ...]
    has_ids: bool = True  # protocol 1 sends none: then the readings are those of the sensors in order
    opaque: bytes = b""  # from the first reading of a sensor of an unknown type on
    missing: int = 0  # how many readings the opaque bytes hold

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        _check_count(len(self.readings), self.missing, "readings")
        parts = [pack(_UINT16, "The number of readings", len(self.readings) + self.missing)]
        for reading in self.readings:
            if self.has_ids:
                parts.append(pack(_UINT16, "The id of a sensor", reading.sensor))
            parts.append(pack(_INT32, "A reading", reading.value))
        return b"".join((*parts, self.opaque))

    @classmethod
    def decode(cls, payload: bytes, has_known_width: Callable[[int], bool] = lambda _: True) -> "SensorUpdate":
        """Read a payload. Raises MisfitError.

        Args:
            payload: of the packet.
            has_known_width: tells whether the sensor of an id has one of the document's types.
        """
        return _best(
            payload,
            lambda reader: cls._read(reader, lambda _: True),
            cls._read_without_ids,
            fallback=lambda reader: cls._read(reader, has_known_width),
        )

    @classmethod
    def _read(cls, reader: Reader, has_known_width: Callable[[int], bool]) -> "SensorUpdate":
        count = reader.number(_UINT16)
        readings: list[SensorReading] = []
        while len(readings) < count:
            sensor = reader.number(_UINT16)
            if not has_known_width(sensor):
                missing = count - len(readings)
                return cls(tuple(readings), opaque=_UINT16.pack(sensor) + reader.rest(), missing=missing)
            readings.append(SensorReading(sensor, reader.number(_INT32)))
        reader.expect_end()
        return cls(tuple(readings))

    @classmethod
    def _read_without_ids(cls, reader: Reader) -> "SensorUpdate":
        readings = [SensorReading(i, reader.number(_INT32)) for i in range(reader.number(_UINT16))]
        reader.expect_end()
        return cls(tuple(readings), has_ids=False)


def _best(payload: bytes, *layouts: Callable[[Reader], ListT], fallback: Callable[[Reader], ListT]) -> ListT:
    """Return the payload in the first layout that fits and reads like text, or else in the first that fits.

    If none does, the fallback has its chance. Raises MisfitError, with what is wrong in the first layout.
    """
    fitting: list[ListT] = []
    complaint: MisfitError | None = None
    for layout in layouts:
        reader = Reader(payload)
        try:
            result = layout(reader)
        except MisfitError as error:
            complaint = complaint or error
            continue
        if reader.is_readable:
            return result
        fitting.append(result)
    if fitting:
        return fitting[0]
    assert complaint is not None
    try:
        return fallback(Reader(payload))
    except MisfitError:
        raise complaint from None


def _opaque(reader: Reader, smallest: int) -> bytes:
    """Return the bytes from an entry of an unknown type on, at least `smallest` of them, if that can be believed."""
    if not reader.is_readable or reader.remaining < smallest:
        raise MisfitError("what follows an unknown type is too short, or the names are no text")
    return reader.rest()


def _check_count(listed: int, missing: int, what: str) -> None:
    if listed + missing > 0xFFFF:
        raise LocalProtocolError(f"{listed + missing} {what} are more than the {0xFFFF} that the wire can count.")
