# SPDX-License-Identifier: Apache-2.0
"""The two ends of a conversation in the robot protocol."""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from drone_bridge.protocols.errors import LocalProtocolError, RemoteProtocolError
from drone_bridge.protocols.events import NEED_DATA, ConnectionClosed, NeedData
from drone_bridge.protocols.robot.lists import (
    KNOWN_SENSOR_TYPES,
    SensorInfo,
    SensorUpdate,
    SubsystemInfo,
    SubsystemType,
)
from drone_bridge.protocols.robot.packets import (
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
    decode_light_update,
    decode_opaque_update,
    decode_skid_steer_update,
)
from drone_bridge.protocols.robot.wire import MisfitError

PROTOCOL_VERSION: Final = 2
TCP_PORT: Final = 25600
MAX_PAYLOAD_BYTES: Final = 0xFFFF

_HEADER: Final = struct.Struct(">HB")  # length of what follows, type
_UPDATE: Final = 0x05  # to the robot

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
)

_FROM_DRIVER: Final[dict[type, int]] = {
    KeepAlive: 0x01,
    QuerySubsystems: 0x02,
    RegisterDriver: 0x03,
    BindSubsystem: 0x04,
    SkidSteerUpdate: _UPDATE,
    LightUpdate: _UPDATE,
    OpaqueUpdate: _UPDATE,
    UnbindSubsystem: 0x06,
}
_FROM_ROBOT: Final[dict[type, int]] = {
    KeepAlive: 0x01,
    SubsystemInfo: 0x02,
    BindFailure: 0x03,
    BindSuccess: 0x04,
    SensorUpdate: 0x05,
    SubsystemBound: 0x06,
    SensorInfo: 0x07,
    LogMessage: 0x08,
    FirmwareInfo: 0x09,
}
_UPDATE_DECODERS: Final[dict[int, Callable[[bytes], Update]]] = {
    SubsystemType.SKID_STEER: decode_skid_steer_update,
    SubsystemType.LIGHTS: decode_light_update,
}


class _Packets:
    """Cuts received bytes into packets and reads them; what both roles share."""

    def __init__(self, peer: str, decoders: Mapping[int, Callable[[bytes], object]]) -> None:
        """`peer` is what to call the other side; `decoders` read payloads, by type."""
        self._peer = peer
        self._decoders = decoders
        self._buffer = bytearray()
        self._ended = False
        self._failure: RemoteProtocolError | None = None

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        if not (self._failure or self._ended):
            self._buffer += data

    def end(self) -> None:
        self._ended = True

    def next(self) -> object:
        """Return the next packet, NEED_DATA or ConnectionClosed. Raises RemoteProtocolError, again at each call."""
        if self._failure:
            raise self._failure
        if len(self._buffer) < _HEADER.size:
            return self._at_end("the header of a packet", _HEADER.size)
        length, kind = _HEADER.unpack_from(self._buffer)
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return self._at_end(f"a packet of type 0x{kind:02x}", end)
        payload = bytes(memoryview(self._buffer)[_HEADER.size : end])
        del self._buffer[:end]
        decoder = self._decoders.get(kind)
        if decoder is None:
            return UnknownPacket(kind, payload)
        try:
            return decoder(payload)
        except MisfitError as error:
            raise self._fail(f"The {self._peer} sent a broken packet of type 0x{kind:02x}: {error}.") from None

    def _at_end(self, inside: str, needed: int) -> NeedData | ConnectionClosed:
        if not self._ended:
            return NEED_DATA
        if self._buffer:
            got = f"{len(self._buffer)} of {needed} bytes"
            raise self._fail(f"The {self._peer} closed inside {inside}, after {got}.")
        return ConnectionClosed()

    def _fail(self, sentence: str) -> RemoteProtocolError:
        self._failure = RemoteProtocolError(sentence)
        self._buffer.clear()
        return self._failure


def _frame(packet: FromDriver | FromRobot, kinds: Mapping[type, int], role: str) -> bytes:
    """Return a packet with its header. Raises LocalProtocolError."""
    kind = packet.type if isinstance(packet, UnknownPacket) else kinds.get(type(packet))
    if kind is None or (isinstance(packet, UnknownPacket) and kind in kinds.values()):
        raise LocalProtocolError(f"A {role} does not send {type(packet).__name__}.")
    payload = packet.encode()
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise LocalProtocolError(
            f"{type(packet).__name__} has {len(payload)} bytes, and {MAX_PAYLOAD_BYTES} are allowed."
        )
    return _HEADER.pack(len(payload), kind) + payload


class DriverConnection:
    """The driver's side. `next_event` gives what the robot sends, UnknownPacket for types the document lacks."""

    def __init__(self) -> None:
        self._sensors = SensorInfo(())
        self._is_registered = False
        self._packets = _Packets(
            "robot",
            {
                0x01: KeepAlive.decode,
                0x02: SubsystemInfo.decode,
                0x03: BindFailure.decode,
                0x04: BindSuccess.decode,
                0x05: lambda payload: SensorUpdate.decode(payload, self._has_known_width),
                0x06: SubsystemBound.decode,
                0x07: self._read_sensors,
                0x08: LogMessage.decode,
                0x09: FirmwareInfo.decode,
            },
        )

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes. What follows a broken packet is ignored."""
        self._packets.receive(data)

    def receive_eof(self) -> None:
        """Say that the peer has closed its side: the regular end between packets, an error inside one."""
        self._packets.end()

    def next_event(self) -> FromRobot | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        return self._packets.next()  # type: ignore[return-value]

    def send(self, event: FromDriver) -> bytes:
        """Return the bytes of a packet.

        Raises LocalProtocolError for what a driver does not send, what does not fit the wire, and a bind before the
        driver is registered.
        """
        if isinstance(event, BindSubsystem) and not self._is_registered:
            raise LocalProtocolError("A driver has to register before it binds a subsystem.")
        data = _frame(event, _FROM_DRIVER, "driver")
        self._is_registered |= isinstance(event, RegisterDriver)
        return data

    def _read_sensors(self, payload: bytes) -> SensorInfo:
        self._sensors = SensorInfo.decode(payload)
        return self._sensors

    def _has_known_width(self, sensor: int) -> bool:
        """Return whether the readings of a sensor are int32, as those of all types in the document are."""
        listed = self._sensors.sensors
        return listed[sensor].type in KNOWN_SENSOR_TYPES if sensor < len(listed) else not self._sensors.missing


class RobotConnection:
    """The robot's side, for one driver. `next_event` gives what the driver sends."""

    def __init__(self, subsystem_types: Sequence[int]) -> None:
        """`subsystem_types`: of the robot's subsystems in order, as they tell what an update means."""
        self._subsystem_types = tuple(subsystem_types)
        self._packets = _Packets(
            "driver",
            {
                0x01: KeepAlive.decode,
                0x02: QuerySubsystems.decode,
                0x03: RegisterDriver.decode,
                0x04: BindSubsystem.decode,
                _UPDATE: self._read_update,
                0x06: UnbindSubsystem.decode,
            },
        )

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes. What follows a broken packet is ignored."""
        self._packets.receive(data)

    def receive_eof(self) -> None:
        """Say that the peer has closed its side: the regular end between packets, an error inside one."""
        self._packets.end()

    def next_event(self) -> FromDriver | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        return self._packets.next()  # type: ignore[return-value]

    def send(self, event: FromRobot) -> bytes:
        """Return the bytes of a packet.

        Raises LocalProtocolError for what a robot does not send and for what does not fit the wire.
        """
        return _frame(event, _FROM_ROBOT, "robot")

    def _read_update(self, payload: bytes) -> Update:
        update = decode_opaque_update(payload)
        if update.id >= len(self._subsystem_types):
            return update
        decoder = _UPDATE_DECODERS.get(self._subsystem_types[update.id])
        return decoder(payload) if decoder else update
