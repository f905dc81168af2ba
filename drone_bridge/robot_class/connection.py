# SPDX-License-Identifier: Apache-2.0
"""RobotClassConnection: codec of one end of a connection with a Robot.

A stream is split into packets by its link's framing, and so is a datagram. `decode_report` and `decode_command` decode
a packet, and `decode_<link>` one of a further link. If they raise an error for a packet, it becomes a
RemoteProtocolError. A client drops this packet. After another error, nothing more is read from a TCP stream, but from a
serial line and datagrams.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drone_bridge.kind import Sent, Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.robot_class.returned import described
from drone_bridge.robot_class.robot import (
    DECODE_ERRORS,
    NEUTRALS,
    Answer,
    Command,
    Meaning,
    Robot,
    Telemetry,
    encoded,
    finite_command,
    first_link,
    framing_of,
    further_links,
    image_of,
    is_stream,
    rays_of,
    sample_command,
    step_bytes,
)
from drone_bridge.robot_class.telemetry import possible_telemetry
from drone_bridge.robot_class.transports import MAX_IMAGE_BYTES, MAX_PACKET_BYTES, Framing, Packets
from drone_bridge.wire import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    RemoteProtocolError,
)
from drone_bridge.wire.events import EventQueue

#: Number of skipped bytes that are shown.
FIRST_BYTES = 8
#: Number of bytes of a rejected packet that are shown.
SHOWN_BYTES = 60
#: Largest share of yaw by which a drone that holds its place corrects its heading.
HOLDING_YAW = 0.1


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet, and its meaning for the client, or meanings for the robot."""

    data: bytes
    meaning: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StatePacket(Packet):
    """Packet with telemetry, the source of topics."""

    left_out: tuple[str, ...] = field(default=(), compare=False)
    """Values that were left out of it."""


class RobotClassConnection(EventSource[Packet | ConnectionClosed]):
    """One end of a connection. `robot` is an instance of the description, for its other methods at this end."""

    def __init__(self, robot: type[Robot], side: Side, *, is_line: bool = False) -> None:
        """`side` is OPERATOR at the client's end, which decodes reports, and VEHICLE at the robot's end.

        `is_line`: whether the stream is a serial line, on which a reader begins anywhere and noise is normal: after an
        error, it is read on.
        """
        self.robot, self._side, self._is_line = robot(), side, is_line
        self._is_stream = is_stream(robot)
        link, is_vehicle = first_link(robot), side is Side.VEHICLE
        self._max_bytes = MAX_IMAGE_BYTES if image_of(robot) else MAX_PACKET_BYTES
        self._split = framing_of(link, to_robot=is_vehicle)
        self._split_other = framing_of(link, to_robot=not is_vehicle)  # of packets that are sent
        self._further = {} if is_vehicle else further_links(robot)
        self._buffer, self._queue = bytearray(), EventQueue[Packet]()
        self._wanted = 1  # bytes needed in the buffer for the next packet
        self._failure, self._has_ended = "", False
        #: Errors that this end turns into a RemoteProtocolError. A client's description may raise any.
        self._errors = DECODE_ERRORS if is_vehicle else (Exception,)
        #: The newest packet that the description has rejected.
        self.rejected = b""
        #: Bytes of a stream since the last packet that are none: their number, the first ones, and why.
        self.skipped = 0, b"", ""

    def renewed(self) -> RobotClassConnection:
        """Return a new connection with the robot, whose description takes over its login and what it keeps."""
        new = RobotClassConnection(type(self.robot), self._side, is_line=self._is_line)
        for name in ("login", *self.robot.keeps):
            setattr(new.robot, name, getattr(self.robot, name))
        return new

    @property
    def inside_message(self) -> bool:
        """Whether the stream is inside an incomplete packet."""
        return bool(self._buffer)

    @property
    def has_failed(self) -> bool:
        """Whether nothing more is read from the stream."""
        return bool(self._failure)

    def receive_data(self, data: bytes, link: str | None = None) -> None:
        """Receive a piece of a stream, or a datagram. `link`: name of its link if known, and "" for the first one."""
        if link in self._further or not self._is_stream:
            self._receive_datagram(bytes(data), link)
        elif not (self._failure or self._has_ended):
            self._buffer += data

    def receive_eof(self) -> None:
        """Receive the end of the stream."""
        self._has_ended = True

    def next_event(self) -> Packet | ConnectionClosed | NeedData:
        """Return the next packet, ConnectionClosed at the end of a stream, or NEED_DATA.

        Raises RemoteProtocolError for a packet that the description rejects or that is too long, and for a stream that
        ends inside a packet. An error that ends a stream (`has_failed`) is raised again at each call.
        """
        event = self._queue.next_event()
        if event is not NEED_DATA or not self._is_stream:
            return event
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
        outcome = self._outcome(data, "")
        try:
            if isinstance(outcome, RemoteProtocolError):
                self._reject(data)
                raise outcome if self._side is Side.OPERATOR else self._failed(str(outcome), rest=bytes(self._buffer))
            self.skipped = 0, b"", ""
            return outcome
        finally:
            del outcome  # breaks the reference cycle with the traceback

    def send(self, packet: Packet) -> bytes:
        """Return the bytes of one packet. Raises LocalProtocolError if the other end would decode it differently."""
        try:
            data = packet.data
            is_one = type(data) is bytes and 0 < self._split_other(data) == len(data) <= self._max_bytes
            if is_one:
                link = "" if self._is_stream else None
                outcome = RobotClassConnection(type(self.robot), self._side.other)._outcome(data, link)
                is_one = type(packet) is type(outcome)
        except DECODE_ERRORS:
            is_one = False
        if not is_one:
            raise LocalProtocolError(f"{packet!r:.100} is not a packet.")
        return data

    def _receive_datagram(self, data: bytes, link: str | None) -> None:
        """Decode the packets of a datagram, up to an invalid one."""
        split = framing_of(self._further[link], to_robot=False) if link in self._further else self._split
        try:
            for packet in packets(split, data) if data else (data,):
                self._queue.put(outcome := self._outcome(packet, link))
                if isinstance(outcome, RemoteProtocolError):
                    return
        except self._errors as error:
            self._queue.put(RemoteProtocolError(f"Received data are not a packet: {described(error)}."))

    def _next_size(self) -> int:
        """Return the size of the first packet in the buffer, 0 if incomplete. Raises RemoteProtocolError."""
        while len(self._buffer) >= self._wanted:
            self._wanted = 1
            try:
                size = self._split(bytes(self._buffer))
            except self._errors as error:
                raise self._failed(f"Received data are not a packet: {described(error)}.") from None
            if 0 < size <= min(len(self._buffer), self._max_bytes):
                return size
            if size >= 0:
                if max(size, len(self._buffer)) > self._max_bytes:
                    raise self._failed(f"A packet has more than {self._max_bytes} bytes.")
                self._wanted = max(size, len(self._buffer) + 1)
                return 0
            begins = isinstance(self._split, Packets) and self._buffer.startswith(self._split.start)
            self._skip(self._buffer[:-size], "its checksum is refused" if begins else "no packet begins so")
            del self._buffer[:-size]
        return 0

    def _reject(self, data: bytes) -> None:
        """Count a rejected packet as noise, as at another baud rate, unless it is text or its checksum is right."""
        if data.isascii() or getattr(self._split, "checksum", None):
            self.skipped = 0, b"", ""
        else:
            self._skip(data, "it is rejected")

    def _skip(self, data: bytes | bytearray, reason: str) -> None:
        number, first, why = self.skipped
        self.skipped = number + len(data), first or bytes(data[:FIRST_BYTES]), why or reason

    def _outcome(self, data: bytes, link: str | None = None) -> Packet | RemoteProtocolError:
        """Decode a packet. A datagram of an unknown link, as in a log, is of a further one if it is a report there."""
        if link is None:
            outcomes = (self._outcome(data, each) for each in self._further)
            return next((each for each in outcomes if isinstance(each, StatePacket)), None) or self._outcome(data, "")
        try:
            if self._side is Side.VEHICLE:
                return Packet(data, _meanings(self.robot, data))
            decode = getattr(self.robot, f"decode_{link}", self.robot.decode_report)
            meaning = decode(data)
            if isinstance(meaning, Telemetry):
                telemetry, left_out = possible_telemetry(meaning, self.robot.own_topics, rays_of(type(self.robot)))
                return StatePacket(data, telemetry, tuple(f"{decode.__qualname__}() {each}" for each in left_out))
        except self._errors as error:
            self.rejected = data
            return RemoteProtocolError(f"A packet is dropped: {described(error)}. It is {_shown(data)}.")
        return Packet(data, meaning)

    def _failed(self, sentence: str, rest: bytes = b"") -> RemoteProtocolError:
        """Record an error of a stream, which ends it. A line goes on with the rest."""
        self._failure, self._buffer = ("", bytearray(rest)) if self._is_line else (sentence, bytearray())
        return RemoteProtocolError(sentence)


def _shown(data: bytes) -> str:
    return f"{data[:SHOWN_BYTES]!r}{' ...' if len(data) > SHOWN_BYTES else ''}"


def _meanings(robot: Robot, data: bytes) -> tuple[Meaning, ...]:
    """Return the meanings of a client's packet. Raises DECODE_ERRORS."""
    if request := next((each for each in robot.all_requests.values() if each.packet == data), None):
        return (request,)
    decoded: Any = robot.decode_command(data)
    meanings = decoded if type(decoded) is tuple else (decoded,)
    return tuple(finite_command(each) if isinstance(each, Command) else each for each in meanings)


def packets(framing: Framing, data: bytes) -> Iterator[bytes]:
    """Yield the packets in whole bytes. Raises DECODE_ERRORS."""
    while data:
        size = framing(data)
        if not 0 < size <= len(data):
            raise ValueError(f"no packet begins or ends with {data[:40]!r}")
        yield data[:size]
        data = data[size:]


def commands(robot: type[Robot]) -> Callable[[bytes], Iterator[bool]]:
    """Return a reader of a client's commands, which yields for each whether it is neutral.

    A drone that does not hover by itself tilts to hold its place, so its neutral commands only turn little.
    """
    end = RobotClassConnection(robot, Side.VEHICLE)

    def is_neutral(command: Command) -> bool:
        if isinstance(command, Shares) and not robot.hovers:
            return abs(command.yaw) <= HOLDING_YAW
        return command in NEUTRALS

    def read(data: bytes) -> Iterator[bool]:
        end.receive_data(data)
        for packet in end.events():
            yield from (is_neutral(each) for each in getattr(packet, "meaning", ()) if isinstance(each, Command))

    return read


def conversation(robot: type[Robot]) -> Sequence[Sent]:
    """Return the greeting, a command, telemetry and each request, as sent by both ends of a description."""
    client, its_end = robot(), robot()
    reader = RobotClassConnection(robot, Side.OPERATOR)
    link = first_link(robot)
    sent: list[Sent] = []

    def add(side: Side, data: bytes) -> None:
        for packet in packets(framing_of(link, to_robot=side is Side.OPERATOR), data):
            if side is Side.OPERATOR:
                sent.append(Sent(side, Packet(packet)))
                for answer in _meanings(its_end, packet):
                    if isinstance(answer, bytes):
                        add(Side.VEHICLE, answer)
            elif isinstance(read := reader._outcome(packet, "" if is_stream(robot) else None), Packet):
                sent.append(Sent(side, read))

    for step in client.handshake():
        add(Side.OPERATOR, step if isinstance(step, bytes) else step_bytes(step[0]))
    add(Side.OPERATOR, encoded(client, sample_command(robot)))
    with contextlib.suppress(*(DECODE_ERRORS if further_links(robot) else ())):  # these may have another framing
        add(Side.VEHICLE, its_end.encode_report(sample(robot)) or b"")
    if robot.camera and robot.camera.ask:
        add(Side.OPERATOR, robot.camera.ask)
    for name, request in robot.all_requests.items():
        add(Side.OPERATOR, request.encoded(client))
        add(Side.VEHICLE, its_end.encode_answer(Answer(name)))
    add(Side.OPERATOR, encoded(client, None))
    add(Side.OPERATOR, client.encode_goodbye())
    return sent


#: Meanings of a robot's packet.
SAMPLE = Telemetry(
    (1.0, -2.0, 0.0),
    0.5,
    BodyVelocity(0.3, turn=0.1),
    voltage=12.5,
    charge=0.5,
    height=1.0,
    roll=0.125,
    pitch=-0.25,
    rates=(0.25, 0.5, 0.75),
    acceleration=(0.5, 1.0, 9.75),
    imu_yaw=0.75,
    is_flying=True,
)


def sample(robot: type[Robot]) -> Telemetry:
    """Return meanings of a robot's packet, with a scan whose distances differ, if it has a lidar."""
    if not (lidar := robot.lidar):
        return SAMPLE
    reach = (lidar.range_max - lidar.range_min) / lidar.rays
    return replace(SAMPLE, scan=(math.inf, *(lidar.range_min + reach * each for each in range(1, lidar.rays))))
