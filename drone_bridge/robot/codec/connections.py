# SPDX-License-Identifier: Apache-2.0
"""The two ends of a conversation in the robot protocol."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from drone_bridge.robot.codec.packets import (
    BindFailure,
    BindSubsystem,
    BindSuccess,
    FirmwareInfo,
    KeepAlive,
    LightUpdate,
    LogMessage,
    OpaqueUpdate,
    QuerySubsystems,
    RegisterDriver,
    SkidSteerUpdate,
    SubsystemBound,
    UnbindSubsystem,
    UnknownPacket,
    UnreadableList,
)
from drone_bridge.robot.codec.sensors import KNOWN_SENSOR_TYPES, SensorInfo, SensorUpdate
from drone_bridge.robot.codec.subsystems import SubsystemInfo, SubsystemType
from drone_bridge.robot.codec.wire import Packet
from drone_bridge.wire.events import ConnectionClosed, EventT, LocalProtocolError
from drone_bridge.wire.layouts import MisfitError, Numbers, is_one_of
from drone_bridge.wire.stream import StreamConnection

PROTOCOL_VERSION: Final = 2
DEFAULT_PORT: Final = 25600
TCP_PORT: Final = DEFAULT_PORT  # its name of old
MAX_PAYLOAD_BYTES: Final = 0xFFFF

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

_UPDATES: Final[dict[int, type[SkidSteerUpdate | LightUpdate]]] = {
    SubsystemType.SKID_STEER: SkidSteerUpdate,
    SubsystemType.LIGHTS: LightUpdate,
}
_TYPE: Final = Numbers("B")


_HEADER: Final = struct.Struct(">HB")  # length of what follows, type
HEADER_BYTES: Final = _HEADER.size


def in_pieces(packets: Iterable[bytes]) -> list[bytes]:
    """Return the header and the payload of each packet, to be sent one by one, as the protocol's own driver does.

    A robot may handle one packet per socket read, as the LEGO NXT adapters do: of two packets that arrive in one piece,
    the second waits for the next piece, and so does everything after it, for good. An additional piece per packet makes
    such a robot catch up.
    """
    pieces = (piece for packet in packets for piece in (packet[:HEADER_BYTES], packet[HEADER_BYTES:]))
    return [piece for piece in pieces if piece]


class _Connection(StreamConnection[EventT]):
    """The base of both roles. `_sent` and `_received` are the packets of either direction, by type."""

    _header = _HEADER
    _us: ClassVar[str]
    _sent: ClassVar[Mapping[int, tuple[type[Packet], ...]]]
    _received: ClassVar[Mapping[int, type[Packet]]]

    def _measure(self, *header: int) -> tuple[str, int]:
        length, kind = header
        return f"a packet of type 0x{kind:02x}", length

    def _read_message(self, header: tuple[int, ...], start: int, end: int) -> Any:
        payload = bytes(memoryview(self._buffer)[start:end])
        packet = self._received.get(header[1])
        return self._decode(packet, payload) if packet else UnknownPacket(header[1], payload)

    def _decode(self, packet: type[Packet], payload: bytes) -> Packet:
        return packet.decode(payload)

    def _frame(self, packet: Packet) -> bytes:
        """Return a packet with its header. Raises LocalProtocolError."""
        name = type(packet).__name__
        is_unknown = isinstance(packet, UnknownPacket)
        kind = packet.type if isinstance(packet, UnknownPacket) else getattr(packet, "ID", -1)
        if is_unknown == is_one_of(kind, tuple(self._sent)) or not (is_unknown or type(packet) in self._sent[kind]):
            raise LocalProtocolError(f"A {self._us} does not send {name}.")
        payload = packet.encode()
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise LocalProtocolError(f"{name} has {len(payload)} bytes, and {MAX_PAYLOAD_BYTES} are allowed.")
        return len(payload).to_bytes(2, "big") + _TYPE.pack(kind, f"type of {name}") + payload


def _by_type(*packets: type[Packet]) -> dict[int, type[Packet]]:
    return {packet.ID: packet for packet in packets}


_FROM_DRIVER: Final = _by_type(KeepAlive, QuerySubsystems, RegisterDriver, BindSubsystem, OpaqueUpdate, UnbindSubsystem)
_FROM_ROBOT: Final = _by_type(
    KeepAlive,
    SubsystemInfo,
    BindFailure,
    BindSuccess,
    SensorUpdate,
    SubsystemBound,
    SensorInfo,
    LogMessage,
    FirmwareInfo,
)


#: What a driver can do without: their layouts differ from robot to robot, and their lengths tell where they end.
_LISTS: Final = (SubsystemInfo, SensorInfo, SensorUpdate)


class _Listed:
    """The robot's lists on a connection, which determine the meaning of later packets."""

    def __init__(self) -> None:
        self._subsystems: SubsystemInfo | None = None
        self._sensors = SensorInfo(())

    def note(self, packet: Packet) -> None:
        if isinstance(packet, SubsystemInfo):
            self._subsystems = packet
        elif isinstance(packet, SensorInfo):
            self._sensors = packet

    def has_known_width(self, sensor: int) -> bool:
        """Return whether the readings of a sensor are int32, as for all documented types."""
        listed = self._sensors.sensors
        return listed[sensor].type in KNOWN_SENSOR_TYPES if sensor < len(listed) else not self._sensors.missing

    def decode(self, packet: type[Packet], payload: bytes) -> Packet:
        """Decode a payload from the robot. Raises MisfitError."""
        if packet is SensorUpdate:
            return SensorUpdate.decode(payload, self.has_known_width)
        return packet.decode(payload)

    def check(self, update: Update) -> None:
        """Raise LocalProtocolError for an update that does not fit its subsystem's type, if known."""
        if self._subsystems is None:
            return
        listed = self._subsystems.subsystems
        if update.id >= len(listed) and self._subsystems.missing:
            return
        taken = _UPDATES.get(listed[update.id].type, OpaqueUpdate) if update.id < len(listed) else OpaqueUpdate
        if not isinstance(update, taken):
            raise LocalProtocolError(f"Subsystem {update.id} takes {taken.__name__}, and not {type(update).__name__}.")


class DriverConnection(_Connection[FromRobot | ConnectionClosed]):
    """The driver's side.

    `next_event` returns the robot's packets, UnknownPacket for undocumented types, UnreadableList for unknown layouts.
    """

    _peer, _us = "robot", "driver"
    _sent: ClassVar = {
        kind: (SkidSteerUpdate, LightUpdate, OpaqueUpdate) if packet is OpaqueUpdate else (packet,)
        for kind, packet in _FROM_DRIVER.items()
    }
    _received = _FROM_ROBOT

    def __init__(self) -> None:
        super().__init__()
        self._listed = _Listed()
        self._is_registered = False

    def send(self, event: FromDriver) -> bytes:
        """Return the bytes of a packet.

        Raises LocalProtocolError for what a driver does not send, what does not fit the wire, an update that is not
        for the type of its subsystem, and a bind before the driver is registered.
        """
        if isinstance(event, BindSubsystem) and not self._is_registered:
            raise LocalProtocolError("A driver has to register before it binds a subsystem.")
        data = self._frame(event)
        if isinstance(event, Update):
            self._listed.check(event)
        self._is_registered |= isinstance(event, RegisterDriver)
        return data

    def _decode(self, packet: type[Packet], payload: bytes) -> Packet:
        try:
            received = self._listed.decode(packet, payload)
        except MisfitError as error:
            if packet not in _LISTS:
                raise
            return UnreadableList(packet.ID, str(error))
        self._listed.note(received)
        return received


class RobotConnection(_Connection[FromDriver | ConnectionClosed]):
    """The robot's side, for one driver. `next_event` returns the driver's packets."""

    _peer, _us = "driver", "robot"
    _sent: ClassVar = {kind: (packet,) for kind, packet in _FROM_ROBOT.items()}
    _received = _FROM_DRIVER

    def __init__(self, subsystem_types: Sequence[int]) -> None:
        """`subsystem_types`: of the robot's subsystems in order, which determine the meaning of updates.

        A list that is sent later replaces them.
        """
        super().__init__()
        self._subsystem_types = tuple(subsystem_types)
        self._listed = _Listed()

    def send(self, event: FromRobot) -> bytes:
        """Return the bytes of a packet.

        Raises LocalProtocolError for what a robot does not send, what does not fit the wire, and a list that a driver
        would read as something else, as nothing on the wire tells its layout.
        """
        data = self._frame(event)
        if isinstance(event, SubsystemInfo | SensorInfo | SensorUpdate):
            try:
                is_read_back = self._listed.decode(type(event), data[self._header.size :]) == event
            except MisfitError:
                is_read_back = False
            if not is_read_back:
                raise LocalProtocolError(f"A driver would read {event!r:.500} as something else.")
        self._listed.note(event)
        if isinstance(event, SubsystemInfo) and not event.missing:
            self._subsystem_types = tuple(subsystem.type for subsystem in event.subsystems)
        return data

    def _decode(self, packet: type[Packet], payload: bytes) -> Packet:
        received = packet.decode(payload)
        if isinstance(received, OpaqueUpdate) and received.id < len(self._subsystem_types):
            return _UPDATES.get(self._subsystem_types[received.id], OpaqueUpdate).decode(payload)
        return received
