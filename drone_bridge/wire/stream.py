# SPDX-License-Identifier: Apache-2.0
"""The base of connections whose stream is divided into messages."""

import struct
from abc import abstractmethod
from typing import ClassVar

from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, EventSource, EventT, NeedData, RemoteProtocolError
from drone_bridge.wire.layouts import MisfitError


class StreamConnection(EventSource[EventT]):
    """One end of a stream of messages, each with a header that contains its type and length."""

    _header: ClassVar[struct.Struct]
    _peer: ClassVar[str]  # what to call the other side

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0  # of the first message in the buffer that has not been read
        self._has_ended = False
        self._failure = ""  # the sentence: an exception would keep the frames it went through, and all they hold

    @property
    def inside_message(self) -> bool:
        """Whether part of a message was received, after `next_event` has returned NEED_DATA."""
        return self.unread_bytes > 0

    @property
    def unread_bytes(self) -> int:
        """How much was received that `next_event` has not returned yet."""
        return len(self._buffer) - self._start

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Receive bytes. Those after a broken message are ignored."""
        if self._failure or self._has_ended:
            return
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def receive_eof(self) -> None:
        """Handle the end of the peer's stream: regular between messages, an error inside one."""
        self._has_ended = True

    def next_event(self) -> EventT | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        if self._failure:
            raise RemoteProtocolError(self._failure)
        available = len(self._buffer) - self._start
        if available < self._header.size:
            return self._wait_or_end("a header", self._header.size)
        header = self._header.unpack_from(self._buffer, self._start)
        name, length = self._measure(*header)
        if available < self._header.size + length:
            return self._wait_or_end(name, self._header.size + length)
        body = self._start + self._header.size
        self._start = body + length
        try:
            return self._read_message(header, bytes(memoryview(self._buffer)[body : self._start]))
        except MisfitError as error:
            raise self._fail(f"sent {name} that is broken: {error}") from None

    @abstractmethod
    def _measure(self, *header: int) -> tuple[str, int]:
        """Return a message's name and the length of its body. Raises what `_fail` returns to refuse it."""

    @abstractmethod
    def _read_message(self, header: tuple[int, ...], body: bytes) -> EventT:
        """Decode a body. Raises MisfitError."""

    def _fail(self, deed: str) -> RemoteProtocolError:
        """Refuse all further data; return the error to raise."""
        self._failure = f"The {self._peer} {deed}."
        self._buffer.clear()
        self._start = 0
        return RemoteProtocolError(self._failure)

    def _wait_or_end(self, inside: str, needed: int) -> EventT | NeedData:
        if not self._has_ended:
            return NEED_DATA
        if got := self.unread_bytes:
            raise self._fail(f"closed inside {inside}, after {got} of {needed} bytes")
        return ConnectionClosed()  # type: ignore[return-value] # which is among the events of each connection
