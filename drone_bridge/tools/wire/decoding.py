# SPDX-License-Identifier: Apache-2.0
"""Decoder: decodes the data of a connection with the codecs of both ends."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drone_bridge.kind import Recorded, Side, load
from drone_bridge.tools.wire.describing import describe
from drone_bridge.tools.wire.log_file import LogEntry, LoggedConnection, LogSource
from drone_bridge.wire import ConnectionClosed, LocalProtocolError, RemoteProtocolError

#: Number of bytes kept before a violation.
AROUND_BYTES = 4096
NOT_KEPT, SOUGHT, OF_VIDEO = "that were not kept", "before the next message", "of video"
#: After missing bytes of a stream, a message begins where the other side has sent, or after such a pause, ns.
PAUSE_NS = 20_000_000
MAX_BEGIN = 100  # entries before the missing bytes


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """Message of the protocol."""

    sender: Side
    event: Any

    @property
    def meaning(self) -> Any:
        """Message itself, without the request that it responds to."""
        return getattr(self.event, "response", self.event)

    @property
    def text(self) -> str:
        """Message on one line."""
        if self.meaning is not self.event:
            return f"{describe(self.meaning)}, to {type(self.event.request).__name__}"
        return describe(self.event)


@dataclass(frozen=True, slots=True)
class Violation:
    """Protocol violation. The rest of a stream can't be decoded after it."""

    sender: Side
    sentence: str
    offset: int  # of the first byte of `around`, in the stream
    around: bytes  # bytes since the last complete message, or the last of them


@dataclass(frozen=True, slots=True)
class UndecodedBytes:
    """Bytes after a violation, or bytes that are no packet and are skipped."""

    sender: Side
    size: int
    reason: str = "that can't be decoded"


Outcome = DecodedMessage | Violation | UndecodedBytes


class Decoder:
    """Decoder of the entries of one connection."""

    def __init__(self, source: LogSource, connection: LoggedConnection) -> None:
        self._source, self._is_stream = source, connection.is_stream
        self._is_conversation = connection.is_conversation
        self._ends: Recorded = load(source.kind.recorded)(source.kind, source.parameters)
        self._begin: list[LogEntry] = []  # up to the first missing bytes
        self._whole = 0  # number of these that end with a message
        self._is_cut = False
        self._waiting: set[Side] = set()  # whose next message is sought
        self._last: LogEntry | None = None
        self._broken: set[Side] = set()
        self._pending = {side: bytearray() for side in Side}  # bytes since the last complete message
        self._skipped = dict.fromkeys(Side, 0)  # bytes since the last packet
        self._offsets = dict.fromkeys(Side, 0)  # of the pending bytes, in the stream

    def feed(self, entry: LogEntry) -> Iterator[Outcome]:
        """Decode an entry. Yield the messages that it completes."""
        sender, last, self._last = entry.sender, self._last, entry
        if last and (last.sender is not sender or entry.time_ns > last.time_ns + PAUSE_NS):
            self._waiting.discard(sender)
        if entry.omitted and (entry.is_gap or not (self._is_stream and self._is_conversation)):
            yield UndecodedBytes(sender, entry.omitted, NOT_KEPT)
            if self._is_stream:
                self._restart(sender)
        elif not self._is_conversation:
            yield UndecodedBytes(sender, len(entry.data), OF_VIDEO)
        elif sender in self._broken | self._waiting:
            if size := len(entry.data) or entry.omitted:
                yield UndecodedBytes(sender, size, *([SOUGHT] if sender in self._waiting else []))
        else:
            if not self._is_cut and len(self._begin) < MAX_BEGIN:
                self._begin.append(entry)
            yield from self._decode(entry)
            if not self._is_cut and not any(self._pending.values()):
                self._whole = len(self._begin)

    def _restart(self, sender: Side) -> None:
        """Decode anew after missing bytes of a side, from its next message on, with what began the connection."""
        self._waiting |= {sender, *(side for side, pending in self._pending.items() if pending)}
        self._ends = load(self._source.kind.recorded)(self._source.kind, self._source.parameters)
        self._is_cut, self._broken, self._skipped = False, set(), dict.fromkeys(Side, 0)
        for entry in self._begin[: self._whole]:
            for _ in self._decode(entry):
                pass
        self._is_cut = True
        for pending in self._pending.values():
            pending.clear()

    def _decode(self, entry: LogEntry) -> Iterator[Outcome]:
        sender, data = entry.sender, entry.data or bytes(entry.omitted)  # such as those of a picture
        self._ends.prepare(sender)
        yield from self._drain(sender.other)
        reader: Any = self._ends.readers[sender]
        if data or not self._is_stream:
            self._pending[sender] += data
            reader.receive_data(data)
        else:
            reader.receive_eof()
        yield from self._drain(sender)
        size, first, reason = getattr(reader, "skipped", (0, b"", ""))
        if size > self._skipped[sender]:
            found = f"that are no packet: {first.hex(' ')} ...: {reason}"
            yield UndecodedBytes(sender, size - self._skipped[sender], found)
        self._skipped[sender] = size

    def pending(self, side: Side) -> int:
        """Return the number of bytes of a side since its last complete message."""
        return len(self._pending[side])

    def unfinished(self) -> Iterator[Violation]:
        """Yield the bytes of an incomplete message for each side, such as one of a wrong length."""
        for sender, pending in self._pending.items():
            if pending and sender not in self._broken:
                yield self._violation(sender, f"{len(pending)} bytes of an incomplete message")

    def _violation(self, sender: Side, sentence: str) -> Violation:
        pending = self._pending[sender]
        skipped = max(0, len(pending) - AROUND_BYTES)
        return Violation(sender, sentence, self._offsets[sender] + skipped, bytes(pending[skipped:]))

    def _drain(self, sender: Side) -> Iterator[Outcome]:
        """Yield the messages of a reader, and its violation if any."""
        while sender not in self._broken:
            try:
                for event in self._ends.readers[sender].events():
                    with contextlib.suppress(LocalProtocolError):
                        self._ends.note_sent(sender, event)
                    yield DecodedMessage(sender, event)
                    if isinstance(event, ConnectionClosed):
                        self._broken.add(sender)
                break
            except RemoteProtocolError as error:
                yield self._violation(sender, str(error))
                if self._is_stream and self._is_cut:
                    self._restart(sender)
                    return
                if self._is_stream:
                    self._broken.add(sender)
        if not getattr(self._ends.readers[sender], "inside_message", False):
            self._offsets[sender] += len(self._pending[sender])
            self._pending[sender].clear()
