# SPDX-License-Identifier: Apache-2.0
"""StreamConnection: base class for connections that frame messages in a byte stream."""

import struct
from abc import abstractmethod
from typing import ClassVar

from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, EventSource, EventT, NeedData, RemoteProtocolError
from drone_bridge.wire.layouts import MisfitError


class StreamConnection(EventSource[EventT]):
    """One end of a stream of messages, each with a header that contains its type and length. Sans-IO."""

    _header: ClassVar[struct.Struct]
    _peer: ClassVar[str]  # name of the other side in errors

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0  # position of the first unread message in the buffer
        self._has_ended = False
        self._failure = ""  # a sentence: an exception would keep the frames of its traceback alive

    @property
    def inside_message(self) -> bool:
        """Whether an incomplete message is buffered. Valid after `next_event` has returned NEED_DATA."""
        return self.unread_bytes > 0

    @property
    def unread_bytes(self) -> int:
        """Number of received bytes that `next_event` has not consumed."""
        return len(self._buffer) - self._start

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Append received bytes. Bytes after a malformed message are ignored."""
        if self._failure or self._has_ended:
            return
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def receive_eof(self) -> None:
        """End the stream as the peer has: regular between messages, an error inside one."""
        self._has_ended = True

    def next_event(self) -> EventT | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, and repeats it at each later call."""
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
            raise self._fail(f"sent {name} that is malformed: {error}") from None

    @abstractmethod
    def _measure(self, *header: int) -> tuple[str, int]:
        """Return a message's name and the length of its body. Raises the error from `_fail` to reject it."""

    @abstractmethod
    def _read_message(self, header: tuple[int, ...], body: bytes) -> EventT:
        """Decode a body. Raises MisfitError."""

    def _fail(self, deed: str) -> RemoteProtocolError:
        """Reject all further data. Return the error to raise."""
        self._failure = f"The {self._peer} {deed}."
        self._buffer.clear()
        self._start = 0
        return RemoteProtocolError(self._failure)

    def _wait_or_end(self, inside: str, needed: int) -> EventT | NeedData:
        if not self._has_ended:
            return NEED_DATA
        if got := self.unread_bytes:
            raise self._fail(f"closed inside {inside}, after {got} of {needed} bytes")
        return ConnectionClosed()  # type: ignore[return-value] # an event of every connection
