# SPDX-License-Identifier: Apache-2.0
"""The robot protocol's list of sensors (0x07), and their readings (0x05)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final

from drone_bridge.robot.codec.lists import REST, UINT16, best_fit, encoded_count, opaque_rest
from drone_bridge.robot.codec.wire import Packet, Reader, String
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import Int32, MisfitError, Numbers, UInt16, layout_of

_INT32: Final = Numbers("i")
_STRING: Final = layout_of(String)
_SMALLEST_SENSOR: Final = 2 + 2  # bytes: type, an empty string
_HIGHEST_TYPE: Final = 0x7FFF  # of a sensor: what the document's int16 can say
_MILLIVOLTS_PER_VOLT: Final = 1000


class SensorType(IntEnum):
    """The documented types of sensors."""

    NULL = 0
    BATTERY = 1
    THERMOMETER = 2
    AMMETER = 3
    MOTOR_PWM = 4


KNOWN_SENSOR_TYPES: Final = frozenset(SensorType)


class SensorLayout(str, Enum):
    """The layouts of the list of sensors (0x07)."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # the type is an int32, and only batteries have a value: full voltage in whole volts
    PROTOCOL_1 = "protocol-1"  # batteries only: full voltage, voltage, name; the NXT adapters, robotd before 2017


_TYPES: Final = {SensorLayout.DOCUMENT: Numbers("h"), SensorLayout.ROBOTD_1_2: _INT32}


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor. None is a value that the robot does not give."""

    type: int  # a SensorType, or another number
    name: str
    value: int | None = None  # mV, hundredths of a degree Celsius, mA, or -2048 to 2048, by the type
    full_voltage_mv: int | None = None  # of a battery


@dataclass(frozen=True, slots=True)
class SensorInfo(Packet):
    """0x07: the sensors. A sensor's id is its index."""

    ID = 0x07
    sensors: tuple[Sensor, ...]
    layout: SensorLayout = SensorLayout.DOCUMENT
    opaque: bytes = b""  # from the value of the first sensor of an unknown type on, which is the last one listed
    missing: int = 0  # how many more sensors the opaque bytes hold
    has_replacements: bool = field(default=False, compare=False)

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        if not isinstance(self.layout, SensorLayout):
            raise LocalProtocolError(f"The layout of the sensors is {self.layout!r:.200}, and has to be SensorLayout.")
        parts = [encoded_count(self.sensors, Sensor, self.missing, "sensors")]
        for sensor in self.sensors:
            name = _STRING.pack(sensor.name, "name of a sensor")
            if self.layout is SensorLayout.PROTOCOL_1:
                parts += [self._encode_value(sensor), name]
            else:
                parts += [_TYPES[self.layout].pack(sensor.type, "type of a sensor"), name, self._encode_value(sensor)]
        return b"".join((*parts, REST.pack(self.opaque, "rest")))

    def _encode_value(self, sensor: Sensor) -> bytes:
        value, voltage = f"value of {sensor.name!r:.100}", f"full voltage of {sensor.name!r:.100}"
        if self.layout is SensorLayout.PROTOCOL_1 and sensor.type != SensorType.BATTERY:
            raise LocalProtocolError(f"{sensor.name!r:.100} is no battery, and protocol 1 lists nothing else.")
        if self.layout is SensorLayout.ROBOTD_1_2:
            if sensor.type != SensorType.BATTERY:
                return b""
            millivolts = sensor.full_voltage_mv
            if not isinstance(millivolts, int) or millivolts % _MILLIVOLTS_PER_VOLT:
                raise LocalProtocolError(f"The {voltage} is {millivolts} mV, and has to be whole volts in this layout.")
            return _INT32.pack(millivolts // _MILLIVOLTS_PER_VOLT, voltage)
        if sensor.type == SensorType.NULL or sensor.type not in KNOWN_SENSOR_TYPES:
            return b""
        if sensor.type == SensorType.BATTERY:
            return _INT32.pack(sensor.full_voltage_mv, voltage) + _INT32.pack(sensor.value, value)
        return _INT32.pack(sensor.value, value)

    @classmethod
    def decode(cls, payload: bytes) -> "SensorInfo":
        """Decode a payload in any of the layouts. Raises MisfitError."""
        return best_fit(
            payload,
            cls._read_document,
            cls._read_robotd,
            cls._read_protocol_1,
            fallback=lambda reader: cls._read_document(reader, may_be_opaque=True),
        )

    @classmethod
    def _read_document(cls, reader: Reader, may_be_opaque: bool = False) -> "SensorInfo":
        layout = SensorLayout.DOCUMENT
        sensors: list[Sensor] = []
        for missing in reversed(range(UINT16.read(reader, "count"))):
            kind, name = _TYPES[layout].read(reader, "type"), _STRING.read(reader, "name")
            if kind == SensorType.BATTERY:
                full_voltage_mv = _INT32.read(reader, "full voltage")
                sensors.append(Sensor(kind, name, _INT32.read(reader, "value"), full_voltage_mv))
            elif kind == SensorType.NULL:
                sensors.append(Sensor(kind, name))
            elif kind in KNOWN_SENSOR_TYPES:
                sensors.append(Sensor(kind, name, _INT32.read(reader, "value")))
            elif may_be_opaque:
                sensors.append(Sensor(kind, name))
                opaque = opaque_rest(reader, missing * _SMALLEST_SENSOR)
                return cls(tuple(sensors), layout, opaque, missing, reader.has_replacements)
            else:
                raise MisfitError(f"the type {kind} of sensor {len(sensors)} is unknown")
        reader.expect_end()
        return cls(tuple(sensors), layout, has_replacements=reader.has_replacements)

    @classmethod
    def _read_robotd(cls, reader: Reader) -> "SensorInfo":
        """Unknown types can be read as well, as no type has a value in this layout."""
        sensors: list[Sensor] = []
        for _ in range(UINT16.read(reader, "count")):
            kind = _INT32.read(reader, "type")
            if not 0 <= kind <= _HIGHEST_TYPE:
                raise MisfitError(f"the type {kind} of sensor {len(sensors)} is none")
            name = _STRING.read(reader, "name")
            is_battery = kind == SensorType.BATTERY
            full_voltage_mv = _INT32.read(reader, "full voltage") * _MILLIVOLTS_PER_VOLT if is_battery else None
            sensors.append(Sensor(kind, name, full_voltage_mv=full_voltage_mv))
        reader.expect_end()
        return cls(tuple(sensors), SensorLayout.ROBOTD_1_2, has_replacements=reader.has_replacements)

    @classmethod
    def _read_protocol_1(cls, reader: Reader) -> "SensorInfo":
        sensors: list[Sensor] = []
        for _ in range(UINT16.read(reader, "count")):
            full_voltage_mv, value = _INT32.read(reader, "full voltage"), _INT32.read(reader, "value")
            sensors.append(Sensor(SensorType.BATTERY, _STRING.read(reader, "name"), value, full_voltage_mv))
        reader.expect_end()
        return cls(tuple(sensors), SensorLayout.PROTOCOL_1, has_replacements=reader.has_replacements)


@dataclass(frozen=True, slots=True)
class SensorReading(Packet):
    """The newest value of one sensor."""

    sensor: UInt16  # its place in the list of sensors
    value: Int32  # in the unit of its type, see Sensor


@dataclass(frozen=True, slots=True)
class SensorUpdate(Packet):
    """0x05: readings."""

    ID = 0x05
    readings: tuple[SensorReading, ...]
    has_ids: bool = True  # protocol 1 sends none: then the readings are those of the sensors in order
    opaque: bytes = b""  # from the first reading of a sensor of an unknown type on
    missing: int = 0  # how many readings the opaque bytes hold

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        count = encoded_count(self.readings, SensorReading, self.missing, "readings")
        if self.has_ids:
            readings = [reading.encode() for reading in self.readings]
        else:
            readings = [_INT32.pack(reading.value, "reading") for reading in self.readings]
        return b"".join((count, *readings, REST.pack(self.opaque, "rest")))

    @classmethod
    def decode(cls, payload: bytes, has_known_width: Callable[[int], bool] = lambda _: True) -> "SensorUpdate":
        """Decode a payload. Raises MisfitError.

        Args:
            payload: of the packet.
            has_known_width: tells whether the sensor of an id has one of the document's types.
        """
        return best_fit(
            payload,
            lambda reader: cls._read(reader, lambda _: True),
            cls._read_without_ids,
            fallback=lambda reader: cls._read(reader, has_known_width),
        )

    @classmethod
    def _read(cls, reader: Reader, has_known_width: Callable[[int], bool]) -> "SensorUpdate":
        readings: list[SensorReading] = []
        for missing in range(UINT16.read(reader, "count"), 0, -1):
            sensor = UINT16.read(reader, "sensor")
            if not has_known_width(sensor):
                opaque = UINT16.pack(sensor, "sensor") + reader.take(reader.remaining, "rest")
                return cls(tuple(readings), opaque=opaque, missing=missing)
            readings.append(SensorReading(sensor, _INT32.read(reader, "value")))
        reader.expect_end()
        return cls(tuple(readings))

    @classmethod
    def _read_without_ids(cls, reader: Reader) -> "SensorUpdate":
        count = UINT16.read(reader, "count")
        readings = tuple([SensorReading(i, _INT32.read(reader, "value")) for i in range(count)])
        reader.expect_end()
        return cls(readings, has_ids=False)
