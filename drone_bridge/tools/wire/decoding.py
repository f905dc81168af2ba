# SPDX-License-Identifier: Apache-2.0
"""Decodes recorded data to messages, with the codecs of both ends of a conversation."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drone_bridge.kind import Recorded, Side, load
from drone_bridge.tools.wire.conversation import Connection, Entry
from drone_bridge.tools.wire.describing import describe, without_pixels
from drone_bridge.wire import ConnectionClosed, LocalProtocolError, RemoteProtocolError

#: How many bytes are kept of those before a violation.
AROUND_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the protocol."""

    sender: Side
    event: Any

    @property
    def meaning(self) -> Any:
        """The message itself, without the question that it answers."""
        return getattr(self.event, "response", self.event)

    @property
    def name(self) -> str:
        """What `--only` calls it."""
        return type(self.meaning).__name__

    @property
    def text(self) -> str:
        """The message on one line."""
        if self.meaning is not self.event:
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
        self._conversations: dict[str, _PeerDecoder] = {}  # by peer: a UDP port may have several

    def feed(self, entry: Entry) -> Iterator[Outcome]:
        """Yield what an entry completes."""
        is_stream = self._connection.is_stream
        if entry.sender is None and not is_stream:
            return
        peer = "" if is_stream else entry.peer
        conversation = self._conversations.get(peer)
        if conversation is None:
            conversation = self._conversations[peer] = _PeerDecoder(self._connection)
        if entry.sender is None:
            conversation.lose()
        else:
            yield from conversation.take(entry)

    @property
    def found_parameters(self) -> dict[str, Any]:
        """What the messages have shown of parameters that the log leaves open."""
        return {name: value for each in self._conversations.values() for name, value in each.ends.found.items()}

    def unfinished(self) -> Iterator[Violation]:
        """Yield, by side, the bytes of a message that is not whole yet: of a wrong length, maybe."""
        for conversation in self._conversations.values():
            yield from conversation.unfinished()


class _PeerDecoder:
    """The conversation with one peer."""

    def __init__(self, connection: Connection) -> None:
        kind = connection.kind
        self.ends: Recorded = load(kind.recorded)(kind, connection.parameters)
        self.broken: set[Side] = set()
        self._is_stream = connection.is_stream
        self._pending = {side: bytearray() for side in Side}  # since the last message that was whole
        self._offsets = dict.fromkeys(Side, 0)  # of those, in the stream
        self._lack_pixels: set[Side] = set()  # in those

    def lose(self) -> None:
        """Note that bytes are missing here, so that the rest can't be decoded."""
        self.broken.update(Side)
        self.ends.lose()

    def _restart(self) -> None:
        """Go on with new readers. Offsets count from here."""
        self.broken.clear()
        self._lack_pixels.clear()
        self._offsets = dict.fromkeys(Side, 0)
        for pending in self._pending.values():
            pending.clear()

    def take(self, entry: Entry) -> Iterator[Outcome]:
        """Yield what a piece, or the end of the stream, completes."""
        sender, data = entry.sender, entry.data
        assert sender
        if self.ends.resumes(sender):
            self._restart()
        if sender in self.broken:
            if data:
                yield Undecoded(sender, len(data))
            return
        self.ends.before(sender)
        yield from self.drain(sender.other)
        if entry.is_left_out:
            self._lack_pixels.add(sender)
        reader: Any = self.ends.readers[sender]
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
                for event in self.ends.readers[sender].events():
                    with contextlib.suppress(LocalProtocolError):
                        self.ends.heard(sender, event)
                    yield Message(sender, without_pixels(event) if sender in self._lack_pixels else event)
                    if isinstance(event, ConnectionClosed):
                        self.broken.add(sender)
                break
            except RemoteProtocolError as error:
                yield self._violation(sender, str(error))
                if self._is_stream:
                    self.broken.add(sender)
        if not getattr(self.ends.readers[sender], "inside_message", False):
            self._offsets[sender] += len(self._pending[sender])
            self._pending[sender].clear()
            self._lack_pixels.discard(sender)
