# SPDX-License-Identifier: Apache-2.0
"""Decodes recorded data to messages, with the codecs of both ends of a conversation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from drone_bridge.dronegui import codec as dronegui
from drone_bridge.robot import codec as robot
from drone_bridge.simulator import codec as simulator
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.testbed import codec as testbed
from drone_bridge.tools.wire.conversation import Connection, Entry, Side
from drone_bridge.tools.wire.describing import describe, without_pixels
from drone_bridge.wire import ConnectionClosed, EventSource, LocalProtocolError, RemoteProtocolError

#: How many bytes are kept of those before a violation.
AROUND_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the protocol."""

    sender: Side
    event: Any

    @property
    def meaning(self) -> Any:
        """The message itself, without the question that it answers."""
        return self.event.response if isinstance(self.event, simulator.Answer) else self.event

    @property
    def name(self) -> str:
        """What `--only` calls it."""
        return type(self.meaning).__name__

    @property
    def text(self) -> str:
        """The message on one line."""
        if isinstance(self.event, simulator.Answer):
            return f"{describe(self.meaning)}, to {type(self.event.request).__name__}"
        return describe(self.event)


@dataclass(frozen=True, slots=True)
class Violation:
    """A breach of the protocol. The rest of a stream can't be decoded after it."""

    sender: Side
    sentence: str
    offset: int  # of the first of the bytes around, in the stream
    around: bytes  # from the last message that was whole on, or the end of that
    has_zeros_for_pixels: bool = False  # as those are not in the log


@dataclass(frozen=True, slots=True)
class Undecoded:
    """Bytes after a violation, or after a gap."""

    sender: Side
    size: int


Outcome = Message | Violation | Undecoded


class Decoder:
    """Turns the entries of one connection into messages."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._conversations: dict[str, _Conversation] = {}  # by peer: a UDP port may have several

    def feed(self, entry: Entry) -> Iterator[Outcome]:
        """Yield what an entry completes."""
        is_stream = self._connection.is_stream
        if entry.sender is None and not is_stream:
            return
        peer = "" if is_stream else entry.peer
        conversation = self._conversations.get(peer)
        if conversation is None:
            conversation = self._conversations[peer] = _CONVERSATIONS[self._connection.protocol](self._connection)
        if entry.sender is None:
            conversation.lose()
        else:
            yield from conversation.take(entry)

    @property
    def found_parameters(self) -> dict[str, Any]:
        """What the messages have shown of parameters that the log leaves open."""
        return {name: value for each in self._conversations.values() for name, value in each.found_parameters().items()}

    def unfinished(self) -> Iterator[Violation]:
        """Yield, by side, the bytes of a message that is not whole yet: of a wrong length, maybe."""
        for conversation in self._conversations.values():
            yield from conversation.unfinished()


class _Conversation:
    """The conversation with one peer. Subclasses set `readers`, the connection that decodes each side."""

    readers: dict[Side, EventSource[Any]]

    def __init__(self, connection: Connection) -> None:
        self.broken: set[Side] = set()
        self._is_stream = connection.is_stream
        self._pending = {side: bytearray() for side in Side}  # since the last message that was whole
        self._offsets = dict.fromkeys(Side, 0)  # of those, in the stream
        self._lack_pixels: set[Side] = set()  # in those
        self.set_up(connection.parameters.get)

    def set_up(self, get: Callable[..., Any]) -> None:
        """Make the readers; `get` returns a parameter of the node that wrote the log, or a default."""

    def found_parameters(self) -> dict[str, Any]:
        """Return what the messages have shown of parameters that the log leaves open."""
        return {}

    def heard(self, sender: Side, event: Any) -> None:
        """Update the other end, which sent the event."""

    def before(self, sender: Side) -> Iterator[Outcome]:
        """Yield what is known to be complete now that this side sends."""
        yield from ()

    def lose(self) -> None:
        """Note that bytes are missing here, so that the rest can't be decoded."""
        self.broken.update(Side)

    def restart(self) -> None:
        """Go on with new readers. Offsets count from here."""
        self.broken.clear()
        self._lack_pixels.clear()
        self._offsets = dict.fromkeys(Side, 0)
        for pending in self._pending.values():
            pending.clear()

    def resume(self, sender: Side) -> None:
        """Decode again from here, if bytes were missing and a message is known to begin here."""

    def take(self, entry: Entry) -> Iterator[Outcome]:
        """Yield what a piece, or the end of the stream, completes."""
        sender, data = entry.sender, entry.data
        assert sender
        self.resume(sender)
        if sender in self.broken:
            if data:
                yield Undecoded(sender, len(data))
            return
        yield from self.before(sender)
        if entry.is_left_out:
            self._lack_pixels.add(sender)
        reader: Any = self.readers[sender]
        if data or not self._is_stream:
            self._pending[sender] += data
            reader.receive_data(data)
        else:
            reader.receive_eof()
        yield from self.drain(sender)

    def unfinished(self) -> Iterator[Violation]:
        """Yield, by side, the bytes of a message that is not whole yet."""
        for sender, pending in self._pending.items():
            if pending and sender not in self.broken:
                yield self._violation(sender, f"{len(pending)} bytes of a message that is not whole")

    def _violation(self, sender: Side, sentence: str) -> Violation:
        pending = self._pending[sender]
        skipped = max(0, len(pending) - AROUND_BYTES)
        offset = self._offsets[sender] + skipped
        return Violation(sender, sentence, offset, bytes(pending[skipped:]), sender in self._lack_pixels)

    def drain(self, sender: Side) -> Iterator[Outcome]:
        """Yield what the reader has."""
        while sender not in self.broken:
            try:
                for event in self.readers[sender].events():
                    self.heard(sender, event)
                    yield Message(sender, without_pixels(event) if sender in self._lack_pixels else event)
                    if isinstance(event, ConnectionClosed):
                        self.broken.add(sender)
                break
            except RemoteProtocolError as error:
                yield self._violation(sender, str(error))
                if self._is_stream:
                    self.broken.add(sender)
        if not getattr(self.readers[sender], "inside_message", False):
            self._offsets[sender] += len(self._pending[sender])
            self._pending[sender].clear()
            self._lack_pixels.discard(sender)


class _Testbed(_Conversation):
    def set_up(self, get: Callable[..., Any]) -> None:
        layout = get("attitude_layout", testbed.AttitudeLayout.PITCH_YAW.value)
        self._unit = testbed.AngleUnit(get("angle_unit", testbed.AngleUnit.DEGREES.value))
        self._limits = testbed.Limits(1 << 16, 1 << 16, 1 << 32)
        self._is_layout_given = layout in [known.value for known in testbed.AttitudeLayout]
        self._autopilot = testbed.AutopilotConnection(
            testbed.AttitudeLayout(layout) if self._is_layout_given else None, self._unit, self._limits
        )
        self._constants: testbed.Constants | None = None
        self._has_constants = False  # the testbed's end, which sent them itself
        self._has_gap = self._is_answered = False  # with an answer since the gap
        self._replace_bed()

    def _replace_bed(self) -> None:
        layout = self._autopilot.layout or testbed.AttitudeLayout.PITCH_YAW
        self._bed = testbed.TestbedConnection(layout, self._unit, self._limits)
        self._has_constants = False
        self.readers = {Side.VEHICLE: self._autopilot, Side.OPERATOR: self._bed}

    def found_parameters(self) -> dict[str, Any]:
        layout = self._autopilot.layout
        return {} if self._is_layout_given or layout is None else {"attitude_layout": layout.value}

    def lose(self) -> None:
        super().lose()
        self._has_gap, self._is_answered = self._constants is not None, False

    def resume(self, sender: Side) -> None:
        """After an answer, what the testbed sends begins a frame."""
        if not self._has_gap:
            return
        if sender is Side.OPERATOR or not self._is_answered:
            self._is_answered = sender is Side.OPERATOR
            return
        assert self._constants
        self._has_gap = False
        self._autopilot = testbed.AutopilotConnection(self._autopilot.layout, self._unit, self._limits)
        self._autopilot.receive_data(testbed.TestbedConnection(limits=self._limits).send(self._constants))
        self._autopilot.next_event()
        self._replace_bed()
        self.restart()

    def before(self, sender: Side) -> Iterator[Outcome]:
        if sender is Side.OPERATOR:  # an answer: so the frame before it has ended
            self._autopilot.peer_waits()
            yield from self.drain(Side.VEHICLE)

    def heard(self, sender: Side, event: Any) -> None:
        if isinstance(event, testbed.Constants):
            self._constants = event
        elif isinstance(event, testbed.SensorFrame):
            try:
                self._tell(event)
            except LocalProtocolError:  # the answer to the frame before is not in the log
                self._replace_bed()
                self._tell(event)

    def _tell(self, frame: testbed.SensorFrame) -> None:
        assert self._constants
        if not self._has_constants:
            if self._autopilot.layout is not None and not self._pending[Side.OPERATOR]:
                self._replace_bed()  # now that the layout is known
            self._bed.send(self._constants)
            self._has_constants = True
        self._bed.send(frame)


class _Dronegui(_Conversation):
    def set_up(self, get: Callable[..., Any]) -> None:
        self.readers = {
            Side.OPERATOR: dronegui.ReceiverConnection(get("python_literals", False)),
            Side.VEHICLE: dronegui.ControllerConnection(),
        }


class _Simulator(_Conversation):
    def set_up(self, get: Callable[..., Any]) -> None:
        self._client = simulator.ClientConnection(max_request_bytes=simulator.MAX_BODY_BYTES, max_outstanding=1 << 20)
        self._server = simulator.ServerConnection()
        self.readers = {Side.OPERATOR: self._server, Side.VEHICLE: self._client}

    def heard(self, sender: Side, event: Any) -> None:
        if isinstance(event, simulator.Answer):
            self._server.send(event.response)
        elif isinstance(event, simulator.Request):
            self._client.send(event)


class _Robot(_Conversation):
    def set_up(self, get: Callable[..., Any]) -> None:
        self._robot = robot.RobotConnection([])
        self._types: list[int] | None = None  # of subsystems, until the robot's end knows them
        self.readers = {Side.OPERATOR: self._robot, Side.VEHICLE: robot.DriverConnection()}

    def before(self, sender: Side) -> Iterator[Outcome]:
        if sender is Side.OPERATOR and self._types is not None and not self._robot.inside_message:
            self._robot = self.readers[Side.OPERATOR] = robot.RobotConnection(self._types)
            self._types = None
        yield from ()

    def heard(self, sender: Side, event: Any) -> None:
        if isinstance(event, robot.SubsystemInfo):
            self._types = [subsystem.type for subsystem in event.subsystems]


class _Telemetry(_Conversation):
    def set_up(self, get: Callable[..., Any]) -> None:
        self.readers = {Side.OPERATOR: telemetry.DroneConnection(), Side.VEHICLE: telemetry.ControllerConnection()}


_CONVERSATIONS: Final[dict[str, type[_Conversation]]] = {
    "testbed": _Testbed,
    "dronegui": _Dronegui,
    "simulator": _Simulator,
    "robot": _Robot,
    "telemetry": _Telemetry,
}
