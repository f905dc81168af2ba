# SPDX-License-Identifier: Apache-2.0
"""DriverConnection and RobotConnection: the two ends of the robot control protocol, versions 1 and 2.

TCP, big-endian packets with a length and a type in front.

Theory of operation ("Control Protocol" of the specification). A driver registers (0x03), queries the lists (0x02),
binds subsystems (0x04) and updates them (0x05). Keep-alives (0x01) show each side that the other one is alive. The
robot responds, and informs all drivers of changes. Nothing is sent on connect. Nothing is in lockstep: packets may come
at any time. Two rules restrict the order: a driver registers before it binds, and the payload of an update depends on
the type of its subsystem, as listed by the robot.

Lengths are uint16, so no packet is larger than MAX_PAYLOAD_BYTES and a header. A wrong length can't be distinguished
from another packet, so a packet that does not decode ends the connection. Lists (0x02, 0x05, 0x07) are an exception:
their layouts differ between robots, and a driver works without them.

On the wire:

Discovery: a datagram with the text `find robots`, to 238.160.102.2, UDP port 25601, or to the robot itself; the
answer is the robot's name.

Control: TCP port 25600, big-endian. A packet is a length (uint16, of the payload), a type (uint8) and a payload of up
to 65535 bytes. A string is a length (uint16) and that many bytes, read as UTF-8.

| to the robot | payload | |
| --- | --- | --- |
| 0x01 keep-alive | time in ms (int64) | every 0.1 s, with the time of day; echoed unchanged |
| 0x02 query | | answered by 0x07, 0x02 and 0x09, in any order |
| 0x03 register | name | before any bind |
| 0x04 bind | id (uint16) | answered by 0x04 or 0x03 |
| 0x05 update | id; left and right (int16, ±2048), or on (uint8) | by the type of the subsystem; ignored unless it is bound |
| 0x06 unbind | id | |

| from the robot | payload | |
| --- | --- | --- |
| 0x01 keep-alive | time in ms | |
| 0x02 subsystems | list of type (uint8), name, driver and, for a skid steer, the ids of 2 x 4 sensors (uint16) | an id is an index in the list |
| 0x03, 0x04 | id | bind refused, granted |
| 0x05 readings | list of sensor (uint16) and value (int32) | every few seconds |
| 0x06 bound | id, driver | to all drivers; no name when it was released |
| 0x07 sensors | list of type (int16), name and, by type, one or two int32 | an id is an index in the list |
| 0x08 log | text | |
| 0x09 firmware | type, version, version of the protocol (uint16) | |
"""  # noqa: E501 -- tables

import contextlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args

from drone_bridge.wire import layouts
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, EventT, LocalProtocolError
from drone_bridge.wire.layouts import (
    Bytes,
    Int32,
    Int64,
    Layout,
    MisfitError,
    Numbers,
    RestOfBody,
    Text,
    UInt8,
    UInt16,
    check_items,
    is_one_of,
    layout_of,
)
from drone_bridge.wire.messages import Message
from drone_bridge.wire.outgoing import Range
from drone_bridge.wire.stream import StreamConnection

__all__ = [
    "DEFAULT_PORT", "DISCOVERY_GROUP", "DISCOVERY_PORT", "DISCOVERY_QUERY", "FULL_SPEED", "HEADER_BYTES",
    "MAX_PAYLOAD_BYTES", "MAX_STRING_BYTES", "NEED_DATA", "PROTOCOL_VERSION", "TCP_PORT", "BindFailure",
    "BindSubsystem", "BindSuccess", "ConnectionClosed", "DriverConnection", "FirmwareInfo", "FromDriver", "FromRobot",
    "KeepAlive", "LightUpdate", "LogMessage", "MotorSensors", "OpaqueUpdate", "QuerySubsystems", "RegisterDriver",
    "RobotConnection", "Sensor", "SensorInfo", "SensorLayout", "SensorReading", "SensorType", "SensorUpdate",
    "SkidSteerUpdate", "Subsystem", "SubsystemBound", "SubsystemInfo", "SubsystemType", "UnbindSubsystem",
    "UnknownPacket", "UnreadableList", "in_pieces",
]  # fmt: skip

PROTOCOL_VERSION = 2
DEFAULT_PORT = 25600
TCP_PORT = DEFAULT_PORT  # former name
#: Section "Discovery Protocol": the request goes to a multicast group, and the reply is the robot's bare name.
DISCOVERY_GROUP = "238.160.102.2"
DISCOVERY_PORT = 25601
DISCOVERY_QUERY = b"find robots"
MAX_PAYLOAD_BYTES = 0xFFFF  # limit of a packet's uint16 length
MAX_STRING_BYTES = 0xFFFF  # limit of a string's uint16 length

PacketT = TypeVar("PacketT", bound="Packet")


class Reader(layouts.LayoutReader):
    """Reader of one packet's payload."""

    #: Whether each string read so far looks like text, without control characters.
    is_readable = True


class _String(Text):
    def read(self, reader: layouts.LayoutReader, meaning: str) -> Any:
        assert isinstance(reader, Reader)
        text = self.read_bytes(reader, meaning).decode(errors="replace")
        reader.is_readable &= text.isprintable()
        return text


#: U+FFFD replaces bytes that are not UTF-8.
String = Annotated[str, _String("H", errors="strict")]


class Packet(Message):
    """Base class for packets: messages preceded by the length of their payload."""

    __slots__ = ()

    @classmethod
    def decode(cls: type[PacketT], body: bytes) -> PacketT:
        """Decode a whole payload. Raises MisfitError."""
        reader = Reader(body)
        packet = cls.read(reader)
        reader.expect_end()
        return packet


# Packets without lists.


FULL_SPEED = 2048  # of a motor, on the wire; negative values are backwards
SPEED = Range(-FULL_SPEED, FULL_SPEED)


class Speeds(NamedTuple):
    """Speeds of a skid steer's sides on the wire: -FULL_SPEED to FULL_SPEED, positive forward."""

    left: int
    right: int


STOPPED = Speeds(0, 0)


class _Speed(Numbers):
    """Speed that is checked when sent. Received values may exceed full speed, and are kept."""

    def flat(self, value: Any, meaning: str) -> tuple[Any, ...] | list[Any]:
        if isinstance(value, int) and not SPEED.holds(value):
            raise LocalProtocolError(f"The {meaning} is {value}, but must be within ±{FULL_SPEED}.")
        return super().flat(value, meaning)


class _OnOff(Layout):
    _byte = Numbers("B")
    _flag = Numbers("?")

    def pack(self, value: Any, meaning: str) -> bytes:
        return self._flag.pack(value, meaning)

    def read(self, reader: layouts.LayoutReader, meaning: str) -> Any:
        state = self._byte.read(reader, meaning)
        if state > 1:
            raise MisfitError(f"{meaning} is {state}, but must be 0 or 1")
        return bool(state)


@dataclass(frozen=True, slots=True)
class KeepAlive(Packet):
    """Keep-alive (0x01, in both directions). The robot echoes it."""

    ID = 0x01
    time_ms: Int64  # when the driver sent it, by the driver's clock


@dataclass(frozen=True, slots=True)
class QuerySubsystems(Packet):
    """Query (0x02) to the robot, which responds with the lists of subsystems and sensors."""

    ID = 0x02


@dataclass(frozen=True, slots=True)
class RegisterDriver(Packet):
    """Registration (0x03) to the robot: the driver's name, before any bind."""

    ID = 0x03
    name: String

    @classmethod
    def decode(cls, payload: bytes) -> "RegisterDriver":
        """Decode a payload, including those of Java drivers, whose length counts characters instead of bytes.

        Raises MisfitError.
        """
        try:
            return super(RegisterDriver, cls).decode(payload)
        except MisfitError:
            if (name := _name_by_characters(payload)) is None:
                raise
            return cls(name)


def _name_by_characters(payload: bytes) -> str | None:
    """Return the name if its length is that of a Java string, in UTF-16 units. Otherwise None."""
    try:
        name = payload[2:].decode()
    except UnicodeDecodeError:
        return None
    return name if int.from_bytes(payload[:2], "big") == len(name.encode("utf-16-be")) // 2 else None


@dataclass(frozen=True, slots=True)
class BindSubsystem(Packet):
    """Bind request (0x04) to the robot."""

    ID = 0x04
    id: UInt16  # index in the list of subsystems


@dataclass(frozen=True, slots=True)
class SkidSteerUpdate(Packet):
    """Update (0x05) of a skid steer: the speeds of its motors, from -FULL_SPEED to FULL_SPEED."""

    ID = 0x05
    id: UInt16
    left: Annotated[int, _Speed("h"), SPEED]
    right: Annotated[int, _Speed("h"), SPEED]


@dataclass(frozen=True, slots=True)
class LightUpdate(Packet):
    """Update (0x05) of a light."""

    ID = 0x05
    id: UInt16
    is_on: Annotated[bool, _OnOff()]


@dataclass(frozen=True, slots=True)
class OpaqueUpdate(Packet):
    """Update (0x05) of a subsystem that does not exist or is of an unknown type."""

    ID = 0x05
    id: UInt16
    data: RestOfBody


@dataclass(frozen=True, slots=True)
class UnbindSubsystem(Packet):
    """Unbind request (0x06) to the robot."""

    ID = 0x06
    id: UInt16


@dataclass(frozen=True, slots=True)
class BindFailure(Packet):
    """Refused bind (0x03) from the robot: the subsystem does not exist, or is bound by another driver."""

    ID = 0x03
    id: UInt16


@dataclass(frozen=True, slots=True)
class BindSuccess(Packet):
    """Granted bind (0x04) from the robot, to the new driver of the subsystem."""

    ID = 0x04
    id: UInt16


@dataclass(frozen=True, slots=True)
class SubsystemBound(Packet):
    """Announcement (0x06) from the robot to all drivers: the driver of a subsystem."""

    ID = 0x06
    id: UInt16
    driver: String  # empty: none


@dataclass(frozen=True, slots=True)
class LogMessage(Packet):
    """Log line (0x08) from the robot."""

    ID = 0x08
    text: String


@dataclass(frozen=True, slots=True)
class FirmwareInfo(Packet):
    """Firmware (0x09) of the robot."""

    ID = 0x09
    type: String  # usually robotd or android
    version: String
    protocol_version: UInt16


@dataclass(frozen=True, slots=True)
class UnknownPacket(Packet):
    """A packet of an undocumented type, skipped by its length."""

    type: int
    payload: RestOfBody


@dataclass(frozen=True, slots=True)
class UnreadableList(Packet):
    """List from the robot (0x02, 0x05 or 0x07) in no known layout, skipped by its length."""

    type: int
    problem: str  # why it is not in the specified layout, as the end of a sentence


# Lists. Their layouts differ between programs, and nothing on the wire identifies the layout. A list is therefore read
# strictly in each known layout, and the layout that ends exactly at the packet's end is selected. Nothing after an
# entry of an unknown type can be read, since the size of the entry is unknown: the rest stays `opaque`. This is
# accepted only if the names before it look like text, since any garbage would pass otherwise.


UINT16 = Numbers("H")
REST = Bytes()

ListT = TypeVar("ListT")


def encoded_count(items: Any, kind: type, missing: Any, meaning: str) -> bytes:
    """Return the number of items, including missing ones. Raises LocalProtocolError unless it is a list."""
    check_items(items, kind, meaning)
    if not isinstance(missing, int):
        raise LocalProtocolError(f"The number of missing {meaning} is {missing!r:.200}, but must be an integer.")
    return UINT16.pack(len(items) + missing, f"number of {meaning}")


def best_fit(
    payload: bytes, *layouts: Callable[[Reader], ListT], fallback: Callable[[Reader], ListT] | None = None
) -> ListT:
    """Return the payload in the first layout that fits and reads like text, or else in the first that fits.

    If none fits, the fallback is tried. Raises MisfitError with the problem in the first layout.
    """
    fitting: list[ListT] = []
    problem = ""  # not the exception, whose traceback refers to this frame: a reference cycle would keep the lists
    for layout in layouts:
        reader = Reader(payload)
        try:
            result = layout(reader)
        except MisfitError as error:
            problem = problem or str(error)
            continue
        if reader.is_readable:
            return result
        fitting.append(result)
    if fitting:
        return fitting[0]
    if fallback:
        with contextlib.suppress(MisfitError):
            return fallback(Reader(payload))
    raise MisfitError(problem)


def opaque_rest(reader: Reader, smallest: int) -> bytes:
    """Return the bytes from an entry of an unknown type on, if they are at least `smallest` and credible."""
    if not reader.is_readable or reader.remaining < smallest:
        raise MisfitError("the bytes after an unknown type are too short, or the names are not text")
    return reader.take(reader.remaining, "rest")


# The list of subsystems (0x02), which drivers bind.


_SMALLEST_SUBSYSTEM = 1 + 2 + 2  # bytes: type, two empty strings


class SubsystemType(IntEnum):
    """The documented types of subsystems."""

    INVALID = 0
    SKID_STEER = 1
    LIGHTS = 2


_SUBSYSTEM_TYPES = frozenset(SubsystemType)


@dataclass(frozen=True, slots=True)
class MotorSensors(Packet):
    """The sensors of one side's motor, by their indices in the list of sensors."""

    battery: UInt16
    temperature: UInt16
    current: UInt16
    pwm: UInt16


_MOTOR = layout_of(MotorSensors)


@dataclass(frozen=True, slots=True)
class Subsystem(Packet):
    """A subsystem that a driver can bind."""

    type: UInt8  # a SubsystemType, or another number
    name: String
    driver: String = ""  # that has bound it; empty: none
    left: MotorSensors | None = None  # of a skid steer, absent in protocol 1
    right: MotorSensors | None = None

    def encode(self) -> bytes:
        """Return its list entry. Raises LocalProtocolError."""
        motors = [motor for motor in (self.left, self.right) if motor is not None]
        return b"".join((Packet.encode(self), *(_MOTOR.pack(motor, "sensors of a motor") for motor in motors)))

    @classmethod
    def read_entry(cls, reader: Reader, has_sensors: bool) -> "Subsystem":
        """Read the next list entry. `has_sensors`: whether entries of skid steers include sensors."""
        subsystem = cls.read(reader)
        if subsystem.type != SubsystemType.SKID_STEER or not has_sensors:
            return subsystem
        return replace(subsystem, left=MotorSensors.read(reader), right=MotorSensors.read(reader))


@dataclass(frozen=True, slots=True)
class SubsystemInfo(Packet):
    """List of subsystems (0x02). A subsystem's id is its index."""

    ID = 0x02
    subsystems: tuple[Subsystem, ...]
    opaque: bytes = b""  # from the value of the first subsystem of an unknown type on, which is the last one listed
    missing: int = 0  # number of further subsystems in the opaque bytes

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        count = encoded_count(self.subsystems, Subsystem, self.missing, "subsystems")
        entries = [subsystem.encode() for subsystem in self.subsystems]
        return b"".join((count, *entries, REST.pack(self.opaque, "rest")))

    @classmethod
    def decode(cls, payload: bytes) -> "SubsystemInfo":
        """Decode a payload in the layout of protocol 2 or, without the motors' sensors, 1. Raises MisfitError."""
        return best_fit(
            payload,
            lambda reader: cls._read(reader, has_sensors=True),
            lambda reader: cls._read(reader, has_sensors=False),
            fallback=lambda reader: cls._read(reader, has_sensors=True, may_be_opaque=True),
        )

    @classmethod
    def _read(cls, reader: Reader, has_sensors: bool, may_be_opaque: bool = False) -> "SubsystemInfo":
        subsystems = []
        for missing in reversed(range(UINT16.read(reader, "count"))):
            subsystems.append(Subsystem.read_entry(reader, has_sensors))
            if may_be_opaque and subsystems[-1].type not in _SUBSYSTEM_TYPES:
                opaque = opaque_rest(reader, missing * _SMALLEST_SUBSYSTEM)
                return cls(tuple(subsystems), opaque, missing)
        reader.expect_end()
        return cls(tuple(subsystems))


# The list of sensors (0x07), and their readings (0x05).


_INT16 = Numbers("h")
_INT32 = Numbers("i")
_STRING = layout_of(String)
_SMALLEST_SENSOR = 2 + 2  # bytes: type, an empty string
_HIGHEST_TYPE = 0x7FFF  # of a sensor: the limit of the specified int16
_MILLIVOLTS_PER_VOLT = 1000


class SensorType(IntEnum):
    """The documented types of sensors."""

    NULL = 0
    BATTERY = 1
    THERMOMETER = 2
    AMMETER = 3
    MOTOR_PWM = 4


KNOWN_SENSOR_TYPES = frozenset(SensorType)


class SensorLayout(str, Enum):
    """The layouts of the list of sensors (0x07)."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # the type is an int32, and only batteries have a value: full voltage in whole volts
    PROTOCOL_1 = "protocol-1"  # batteries only: full voltage, voltage, name; the NXT adapters, robotd before 2017


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor. A value of None is not in the robot's list."""

    type: int  # a SensorType, or another number
    name: str
    value: int | None = None  # mV, hundredths of a degree Celsius, mA, or -2048 to 2048, by the type
    full_voltage_mv: int | None = None  # of a battery


def _write_values(sensor: Sensor) -> bytes:
    """Return the full voltage of a battery, and the value."""
    value = _INT32.pack(sensor.value, f"value of {sensor.name!r:.100}")
    if sensor.type != SensorType.BATTERY:
        return value
    return _INT32.pack(sensor.full_voltage_mv, f"full voltage of {sensor.name!r:.100}") + value


def _write_document(sensor: Sensor) -> bytes:
    head = _INT16.pack(sensor.type, "type of a sensor") + _STRING.pack(sensor.name, "name of a sensor")
    has_value = sensor.type != SensorType.NULL and sensor.type in KNOWN_SENSOR_TYPES
    return head + _write_values(sensor) if has_value else head


def _read_document(reader: Reader) -> Sensor:
    """Read an entry. One of an unknown type is read up to its name."""
    kind, name = _INT16.read(reader, "type"), _STRING.read(reader, "name")
    if kind == SensorType.NULL or kind not in KNOWN_SENSOR_TYPES:
        return Sensor(kind, name)
    full_voltage_mv = _INT32.read(reader, "full voltage") if kind == SensorType.BATTERY else None
    return Sensor(kind, name, _INT32.read(reader, "value"), full_voltage_mv)


def _write_robotd(sensor: Sensor) -> bytes:
    head = _INT32.pack(sensor.type, "type of a sensor") + _STRING.pack(sensor.name, "name of a sensor")
    if sensor.type != SensorType.BATTERY:
        return head
    voltage, millivolts = f"full voltage of {sensor.name!r:.100}", sensor.full_voltage_mv
    if not isinstance(millivolts, int) or millivolts % _MILLIVOLTS_PER_VOLT:
        raise LocalProtocolError(f"The {voltage} is {millivolts} mV, but must be whole volts in this layout.")
    return head + _INT32.pack(millivolts // _MILLIVOLTS_PER_VOLT, voltage)


def _read_robotd(reader: Reader) -> Sensor:
    """Read an entry, even of an unknown type, since only batteries have a value."""
    kind = _INT32.read(reader, "type")
    if not 0 <= kind <= _HIGHEST_TYPE:
        raise MisfitError(f"the type {kind} of a sensor is unknown")
    name = _STRING.read(reader, "name")
    is_battery = kind == SensorType.BATTERY
    full_voltage_mv = _INT32.read(reader, "full voltage") * _MILLIVOLTS_PER_VOLT if is_battery else None
    return Sensor(kind, name, full_voltage_mv=full_voltage_mv)


def _write_protocol_1(sensor: Sensor) -> bytes:
    return _write_values(sensor) + _STRING.pack(sensor.name, "name of a sensor")


def _read_protocol_1(reader: Reader) -> Sensor:
    full_voltage_mv, value = _INT32.read(reader, "full voltage"), _INT32.read(reader, "value")
    return Sensor(SensorType.BATTERY, _STRING.read(reader, "name"), value, full_voltage_mv)


#: Functions that write and read an entry, by layout. An ambiguous list is in the first matching layout.
_ENTRIES: dict[SensorLayout, tuple[Callable[[Sensor], bytes], Callable[[Reader], Sensor]]] = {
    SensorLayout.DOCUMENT: (_write_document, _read_document),
    SensorLayout.ROBOTD_1_2: (_write_robotd, _read_robotd),
    SensorLayout.PROTOCOL_1: (_write_protocol_1, _read_protocol_1),
}


@dataclass(frozen=True, slots=True)
class SensorInfo(Packet):
    """List of sensors (0x07). A sensor's id is its index."""

    ID = 0x07
    sensors: tuple[Sensor, ...]
    layout: SensorLayout = SensorLayout.DOCUMENT
    opaque: bytes = b""  # from the value of the first sensor of an unknown type on, which is the last one listed
    missing: int = 0  # number of further sensors in the opaque bytes

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        if not isinstance(self.layout, SensorLayout):
            raise LocalProtocolError(f"The layout of the sensors is {self.layout!r:.200}, but must be a SensorLayout.")
        count = encoded_count(self.sensors, Sensor, self.missing, "sensors")
        write, _ = _ENTRIES[self.layout]
        return b"".join((count, *map(write, self.sensors), REST.pack(self.opaque, "rest")))

    @classmethod
    def decode(cls, payload: bytes) -> "SensorInfo":
        """Decode a payload in any of the layouts. Raises MisfitError."""
        return best_fit(
            payload,
            *(partial(cls._read, layout) for layout in _ENTRIES),
            fallback=partial(cls._read, SensorLayout.DOCUMENT, may_be_opaque=True),
        )

    @classmethod
    def _read(cls, layout: SensorLayout, reader: Reader, may_be_opaque: bool = False) -> "SensorInfo":
        _, read = _ENTRIES[layout]
        sensors: list[Sensor] = []
        for missing in reversed(range(UINT16.read(reader, "count"))):
            sensors.append(read(reader))
            if layout is SensorLayout.DOCUMENT and (kind := sensors[-1].type) not in KNOWN_SENSOR_TYPES:
                if not may_be_opaque:
                    raise MisfitError(f"the type {kind} of sensor {len(sensors) - 1} is unknown")
                opaque = opaque_rest(reader, missing * _SMALLEST_SENSOR)
                return cls(tuple(sensors), layout, opaque, missing)
        reader.expect_end()
        return cls(tuple(sensors), layout)


@dataclass(frozen=True, slots=True)
class SensorReading(Packet):
    """Newest value of one sensor."""

    sensor: UInt16  # index in the list of sensors
    value: Int32  # in the unit of its type, see Sensor


@dataclass(frozen=True, slots=True)
class SensorUpdate(Packet):
    """Sensor readings (0x05)."""

    ID = 0x05
    readings: tuple[SensorReading, ...]
    has_ids: bool = True  # False in protocol 1: readings are in the order of the sensors

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        count = encoded_count(self.readings, SensorReading, 0, "readings")
        if self.has_ids:
            return b"".join((count, *(reading.encode() for reading in self.readings)))
        return b"".join((count, *(_INT32.pack(reading.value, "reading") for reading in self.readings)))

    @classmethod
    def decode(cls, payload: bytes) -> "SensorUpdate":
        """Decode a payload. Raises MisfitError."""
        return best_fit(payload, cls._read, cls._read_without_ids)

    @classmethod
    def _read(cls, reader: Reader) -> "SensorUpdate":
        count = UINT16.read(reader, "count")
        readings = tuple([SensorReading.read(reader) for _ in range(count)])
        reader.expect_end()
        return cls(readings)

    @classmethod
    def _read_without_ids(cls, reader: Reader) -> "SensorUpdate":
        count = UINT16.read(reader, "count")
        readings = tuple([SensorReading(i, _INT32.read(reader, "value")) for i in range(count)])
        reader.expect_end()
        return cls(readings, has_ids=False)


# The two ends of the connection.


Update = SkidSteerUpdate | LightUpdate | OpaqueUpdate
FromDriver = KeepAlive | QuerySubsystems | RegisterDriver | BindSubsystem | UnbindSubsystem | Update | UnknownPacket
FromRobot = (
    KeepAlive
    | SubsystemInfo
    | BindFailure
    | BindSuccess
    | SensorUpdate
    | SubsystemBound
    | SensorInfo
    | LogMessage
    | FirmwareInfo
    | UnknownPacket
    | UnreadableList
)

_UPDATES: dict[int, type[SkidSteerUpdate | LightUpdate]] = {
    SubsystemType.SKID_STEER: SkidSteerUpdate,
    SubsystemType.LIGHTS: LightUpdate,
}
_TYPE = Numbers("B")


_HEADER = struct.Struct(">HB")  # length of the payload, type
HEADER_BYTES = _HEADER.size


def in_pieces(packets: Iterable[bytes]) -> list[bytes]:
    """Return the header and the payload of each packet, to be sent one by one, as the protocol's own driver does.

    A robot may handle one packet per socket read, as the LEGO NXT adapters do. If two packets arrive in one segment,
    the second one waits for the next read, and so do all later ones, indefinitely. An additional segment per packet
    lets such a robot catch up.
    """
    pieces = (piece for packet in packets for piece in (packet[:HEADER_BYTES], packet[HEADER_BYTES:]))
    return [piece for piece in pieces if piece]


class _PacketConnection(StreamConnection[EventT]):
    """Base class for both roles. `_sent` and `_received` are the packet types of either direction."""

    _header = _HEADER
    _us: ClassVar[str]
    _sent: ClassVar[Mapping[int, tuple[type[Packet], ...]]]
    _received: ClassVar[Mapping[int, type[Packet]]]

    def _measure(self, *header: int) -> tuple[str, int]:
        length, kind = header
        return f"a packet of type 0x{kind:02x}", length

    def _read_message(self, header: tuple[int, ...], body: bytes) -> Any:
        packet = self._received.get(header[1])
        return self._decode(packet, body) if packet else UnknownPacket(header[1], body)

    def _decode(self, packet: type[Packet], payload: bytes) -> Packet:
        return packet.decode(payload)

    def _frame(self, packet: Packet) -> bytes:
        """Return a packet with its header. Raises LocalProtocolError."""
        name = type(packet).__name__
        is_unknown = isinstance(packet, UnknownPacket)
        kind = packet.type if isinstance(packet, UnknownPacket) else getattr(packet, "ID", -1)
        if is_unknown == is_one_of(kind, tuple(self._sent)) or not (is_unknown or type(packet) in self._sent[kind]):
            raise LocalProtocolError(f"A {self._us} must not send {name}.")
        payload = packet.encode()
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise LocalProtocolError(f"{name} has {len(payload)} bytes, but must have at most {MAX_PAYLOAD_BYTES}.")
        return len(payload).to_bytes(2, "big") + _TYPE.pack(kind, f"type of {name}") + payload


# Packets by type. The payload of an update depends on its subsystem, and is decoded again once that is known.
_FROM_DRIVER = {packet.ID: packet for packet in get_args(FromDriver) if hasattr(packet, "ID")}
_FROM_ROBOT = {packet.ID: packet for packet in get_args(FromRobot) if hasattr(packet, "ID")}


#: Optional packets, skipped if unreadable: their layouts differ between robots, and their length marks their end.
_LISTS = (SubsystemInfo, SensorInfo, SensorUpdate)


class DriverConnection(_PacketConnection[FromRobot | ConnectionClosed]):
    """Connection of a driver.

    `next_event` returns the robot's packets, UnknownPacket for undocumented types, and UnreadableList for unknown
    layouts.
    """

    _peer, _us = "robot", "driver"
    _sent: ClassVar = {
        kind: (SkidSteerUpdate, LightUpdate, OpaqueUpdate) if packet is OpaqueUpdate else (packet,)
        for kind, packet in _FROM_DRIVER.items()
    }
    _received = _FROM_ROBOT

    def __init__(self) -> None:
        super().__init__()
        self._subsystems: SubsystemInfo | None = None  # as listed, which determines the payload of updates
        self._is_registered = False

    def send(self, event: FromDriver) -> bytes:
        """Return the bytes of a packet.

        Raises LocalProtocolError for packets of the robot, values beyond the wire's range, an update that does not
        match the type of its subsystem, and a bind before the driver is registered.
        """
        if isinstance(event, BindSubsystem) and not self._is_registered:
            raise LocalProtocolError("A driver must register before it binds a subsystem.")
        data = self._frame(event)
        if isinstance(event, Update):
            self._check(event)
        self._is_registered |= isinstance(event, RegisterDriver)
        return data

    def _check(self, update: Update) -> None:
        """Raise LocalProtocolError for an update that does not match its subsystem's type, if known."""
        if self._subsystems is None:
            return
        listed = self._subsystems.subsystems
        if update.id >= len(listed) and self._subsystems.missing:
            return
        taken = _UPDATES.get(listed[update.id].type, OpaqueUpdate) if update.id < len(listed) else OpaqueUpdate
        if not isinstance(update, taken):
            raise LocalProtocolError(f"Subsystem {update.id} accepts {taken.__name__}, not {type(update).__name__}.")

    def _decode(self, packet: type[Packet], payload: bytes) -> Packet:
        try:
            received = packet.decode(payload)
        except MisfitError as error:
            if packet not in _LISTS:
                raise
            return UnreadableList(packet.ID, str(error))
        if isinstance(received, SubsystemInfo):
            self._subsystems = received
        return received


class RobotConnection(_PacketConnection[FromDriver | ConnectionClosed]):
    """Connection of the robot to one driver. `next_event` returns the driver's packets."""

    _peer, _us = "driver", "robot"
    _sent: ClassVar = {kind: (packet,) for kind, packet in _FROM_ROBOT.items()}
    _received = _FROM_DRIVER

    def __init__(self, subsystem_types: Sequence[int]) -> None:
        """`subsystem_types`: of the robot's subsystems in order, which determine the payload of updates.

        A list that is sent later replaces them.
        """
        super().__init__()
        self._subsystem_types = tuple(subsystem_types)

    def send(self, event: FromRobot) -> bytes:
        """Return the bytes of a packet.

        Raises LocalProtocolError for packets of a driver, values beyond the wire's range, and a list that a driver
        would read in another layout, since nothing on the wire identifies the layout.
        """
        data = self._frame(event)
        if isinstance(event, SubsystemInfo | SensorInfo | SensorUpdate):
            try:
                is_read_back = event.decode(data[self._header.size :]) == event
            except MisfitError:
                is_read_back = False
            if not is_read_back:
                raise LocalProtocolError(f"A driver would decode {event!r:.500} differently.")
        if isinstance(event, SubsystemInfo) and not event.missing:
            self._subsystem_types = tuple(subsystem.type for subsystem in event.subsystems)
        return data

    def _decode(self, packet: type[Packet], payload: bytes) -> Packet:
        received = packet.decode(payload)
        if isinstance(received, OpaqueUpdate) and received.id < len(self._subsystem_types):
            return _UPDATES.get(self._subsystem_types[received.id], OpaqueUpdate).decode(payload)
        return received
