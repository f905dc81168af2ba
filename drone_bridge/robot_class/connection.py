# SPDX-License-Identifier: Apache-2.0
"""RobotClassConnection: codec of one end of a connection with a Robot.

A stream is split into packets by the description's `split`, and so is a datagram. `decode` and `parse_command`
decode a packet. If they raise an error for a packet (DECODE_ERRORS), it becomes a RemoteProtocolError. After an error,
nothing more is read from a stream, but the next datagram is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from drone_bridge.kind import Sent, Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class.robot import (
    DECODE_ERRORS,
    NEUTRALS,
    Answer,
    Command,
    Robot,
    Telemetry,
    encoded,
    finite_command,
    finite_telemetry,
    sample_command,
    step_bytes,
)
from drone_bridge.wire import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    RemoteProtocolError,
)
from drone_bridge.wire.events import EventQueue


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet, and its meaning for the end that reads it."""

    data: bytes
    meaning: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StatePacket(Packet):
    """Packet with telemetry, the source of topics."""


def is_neutral(packets: Iterable[Packet | ConnectionClosed]) -> Iterator[bool]:
    """Yield for each command among a robot's received packets whether it is neutral."""
    for packet in packets:
        if isinstance(packet, Packet) and isinstance(packet.meaning, Command):
            yield packet.meaning in NEUTRALS


class RobotClassConnection(EventSource[Packet | ConnectionClosed]):
    """One end of a connection. `robot` is an instance of the description, for its other methods at this end."""

    def __init__(self, robot: type[Robot], side: Side, *, is_line: bool = False) -> None:
        """`side` is OPERATOR at the client's end, which decodes by `decode`, and VEHICLE at the robot's end.

        `is_line`: whether the stream is a serial line, on which a reader begins anywhere and noise is normal: after an
        error, it is read on.
        """
        self.robot, self._side, self._is_line = robot(), side, is_line
        self._is_stream = robot.transport == "tcp"
        self._buffer, self._queue = bytearray(), EventQueue[Packet]()
        self._wanted = 1  # bytes needed in the buffer for the next packet
        self._failure, self._has_ended = "", False
        #: The newest packet that the description has rejected.
        self.rejected = b""

    @property
    def inside_message(self) -> bool:
        """Whether the stream is inside an incomplete packet."""
        return bool(self._buffer)

    def receive_data(self, data: bytes, *, is_state: bool | None = None) -> None:
        """Receive a piece of a stream, or a datagram. `is_state`: whether it came to the state port, if known."""
        if not self._is_stream:
            self._receive_datagram(bytes(data), is_state)
        elif not (self._failure or self._has_ended):
            self._buffer += data

    def receive_eof(self) -> None:
        """Receive the end of the stream."""
        self._has_ended = True

    def next_event(self) -> Packet | ConnectionClosed | NeedData:
        """Return the next packet, ConnectionClosed at the end of a stream, or NEED_DATA.

        Raises RemoteProtocolError for a packet that the description rejects or that is too long, and for a stream that
        ends inside a packet. An error of a stream is raised again at each call.
        """
        if not self._is_stream:
            return self._queue.next_event()
        if self._failure:
            raise RemoteProtocolError(self._failure)
        size = self._next_size()
        if not size:
            if not self._has_ended:
                return NEED_DATA
            if self._buffer:
                raise self._failed("The stream ended inside a packet.")
            return ConnectionClosed()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        outcome = self._outcome(data)
        if isinstance(outcome, RemoteProtocolError):
            raise self._failed(str(outcome))
        return outcome

    def send(self, packet: Packet) -> bytes:
        """Return the bytes of one packet. Raises LocalProtocolError if the other end would decode it differently."""
        try:
            data = packet.data
            is_one = type(data) is bytes and len(data) > 0 and isinstance(packet, Packet)
            if is_one:
                is_one = self.robot.split(data) == len(data) <= self.robot.longest
            if is_one and self._side is Side.OPERATOR:
                type(self.robot)().parse_command(data)
            elif is_one:
                is_one = type(packet) is type(RobotClassConnection(type(self.robot), Side.OPERATOR)._outcome(data))
        except DECODE_ERRORS:
            is_one = False
        if not is_one:
            raise LocalProtocolError(f"{packet!r:.100} is not a packet.")
        return data

    def _receive_datagram(self, data: bytes, is_state: bool | None) -> None:
        """Decode the packets of a datagram, up to an invalid one."""
        while True:
            try:
                size = self.robot.split(data) if data else 0
            except DECODE_ERRORS as error:
                self._queue.put(RemoteProtocolError(f"Received data are not a packet: {_sentence(error)}"))
                return
            if data and not 0 < size <= len(data):
                self._queue.put(RemoteProtocolError(f"A datagram ends with {len(data)} bytes that are no packet."))
                return
            outcome = self._outcome(data[:size], is_state)
            self._queue.put(outcome)
            data = data[size:]
            if not data or isinstance(outcome, RemoteProtocolError):
                return

    def _next_size(self) -> int:
        """Return the size of the first packet in the buffer, 0 if incomplete. Raises RemoteProtocolError."""
        while len(self._buffer) >= self._wanted:
            try:
                size = self.robot.split(bytes(self._buffer))
            except DECODE_ERRORS as error:
                if self._is_line:
                    self._buffer.clear()
                raise self._failed(f"Received data are not a packet: {_sentence(error)}") from None
            self._wanted = 1
            if 0 < size <= min(len(self._buffer), self.robot.longest):
                return size
            if size >= 0:
                if max(size, len(self._buffer)) > self.robot.longest:
                    if self._is_line:
                        self._buffer.clear()
                    raise self._failed(f"A packet has more than {self.robot.longest} bytes.")
                self._wanted = max(size, len(self._buffer) + 1)
                return 0
            del self._buffer[:-size]
        return 0

    def _outcome(self, data: bytes, is_state: bool | None = None) -> Packet | RemoteProtocolError:
        if is_state is None and self.robot.state_port and self._side is Side.OPERATOR:
            outcome = self._outcome(data, is_state=True)
            return outcome if isinstance(outcome, StatePacket) else self._outcome(data, is_state=False)
        try:
            if self._side is Side.VEHICLE:
                meaning: Any = self.robot.parse_command(data)
                return Packet(data, finite_command(meaning) if isinstance(meaning, Command) else meaning)
            meaning = self.robot.decode_state(data) if is_state else self.robot.decode(data)
            if isinstance(meaning, Telemetry):
                return StatePacket(data, finite_telemetry(meaning))
        except DECODE_ERRORS as error:
            self.rejected = data
            return RemoteProtocolError(f"Invalid packet: {_sentence(error)}")
        return Packet(data, meaning)

    def _failed(self, sentence: str) -> RemoteProtocolError:
        """Record an error of a stream. On a line, only a first packet that can't be split is dropped."""
        if self._is_line:
            return RemoteProtocolError(sentence)
        self._failure = sentence
        self._buffer.clear()
        return RemoteProtocolError(sentence)


def _sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if text.endswith(".") else f"{text}."


def as_read(robot: type[Robot], data: bytes) -> Packet:
    """Return a packet of a robot as decoded by a new client."""
    end = robot()
    for decode in (end.decode, end.decode_state):
        try:
            meaning = decode(bytes(data))
            if isinstance(meaning, Telemetry):
                return StatePacket(data, finite_telemetry(meaning))
        except DECODE_ERRORS:
            continue
    return Packet(data)


def packets(robot: Robot, data: bytes) -> Iterator[bytes]:
    """Yield the packets in bytes of this end. Raises DECODE_ERRORS."""
    while data:
        size = robot.split(data)
        if size <= 0:
            raise ValueError(f"its own data are not split into packets: {data[:40]!r}")
        yield data[:size]
        data = data[size:]


def conversation(robot: type[Robot]) -> Sequence[Sent]:
    """Return the greeting, a command, telemetry and each request, as sent by both ends of a description."""
    client, its_end = robot(), robot()
    sent: list[Sent] = []

    def add(side: Side, data: bytes) -> None:
        for packet in packets(client, data):
            sent.append(Sent(side, Packet(packet) if side is Side.OPERATOR else as_read(robot, packet)))
            if side is Side.OPERATOR and isinstance(answer := its_end.parse_command(packet), bytes):
                add(Side.VEHICLE, answer)

    for step in client.handshake():
        add(Side.OPERATOR, step if isinstance(step, bytes) else step_bytes(step[0]))
    add(Side.OPERATOR, encoded(client, sample_command(robot)))
    add(Side.VEHICLE, its_end.encode_state(SAMPLE) or b"")
    for name, request in robot.requests.items():
        add(Side.OPERATOR, request)
        add(Side.VEHICLE, its_end.encode_answer(Answer(name)))
    add(Side.OPERATOR, encoded(client, None))
    add(Side.OPERATOR, client.encode_goodbye())
    return sent


#: Meanings of a robot's packet.
SAMPLE = Telemetry(
    *((1.0, -2.0, 0.0), 0.5, BodyVelocity(0.3, turn=0.1), 12.5, 0.5, 1.0),
    roll=0.125,
    pitch=-0.25,
    rates=(0.25, 0.5, 0.75),
    acceleration=(0.5, 1.0, 9.75),
    is_flying=True,
)
