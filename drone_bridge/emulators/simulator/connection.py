# SPDX-License-Identifier: Apache-2.0
"""One client of the emulated simulator: what waits to be sent to it, and what goes wrong on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from enum import Enum
from typing import Final

from drone_bridge.emulators.faults import Fault
from drone_bridge.emulators.simulator.quirks import Quirks, reason_to_hang_up
from drone_bridge.programs.program import say
from drone_bridge.protocols import simulator as wire

MAX_UNREAD_BYTES: Final = 4 << 20  # of what a client does not take; one that lets more pile up is given up
_BEHIND_BYTES: Final = 256 * 1024  # unread, when there is reason to wait for a client if time does not press
_SEND_BUFFER_BYTES: Final = 256 * 1024  # in the system
_LINGER_S: Final = 1.0  # how long a client gets to read what was sent before its connection was closed
_HEADER_BYTES: Final = 5
_GARBAGE: Final = b"\x03\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00\x00"  # a list of 9 entities with room for one


class FaultKind(str, Enum):
    """What can be made to go wrong with one answer to the first client."""

    TRUNCATE = "truncate"  # half of the answer, then the connection is closed
    GARBAGE = "garbage"  # a list that is longer than its message
    SILENCE = "silence"  # nothing is said any more
    SPLIT = "split"  # from then on each byte is sent by itself


class HangUpError(Exception):
    """The connection to this client is closed; the text says why."""


class Connection:
    """A connected client."""

    def __init__(self, peer: str, writer: asyncio.StreamWriter, quirks: Quirks, fault: Fault[FaultKind] | None) -> None:
        self.peer = peer
        self.is_real = quirks is Quirks.REAL
        self.protocol = (
            wire.ServerConnection(max_body_bytes=wire.MAX_REQUEST_BYTES) if self.is_real else wire.ServerConnection()
        )
        self.given_up: str | None = None  # why
        self._writer = writer
        self._waiting: list[bytes] = []  # to be sent at the next flush
        self._waiting_bytes = 0
        self._fault = fault
        self._answers = 0
        self._is_silent = False
        self._is_split = False
        connected = writer.get_extra_info("socket")
        # The CUAUV server leaves Nagle's algorithm on, so that its bodies wait for the client's acknowledgement.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not self.is_real)
        # What nobody reads piles up here, where it is counted, and not in the system.
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

    def __str__(self) -> str:
        return self.peer

    @property
    def is_behind(self) -> bool:
        """Whether the client reads more slowly than it is sent to."""
        return self._unread_bytes > _BEHIND_BYTES

    @property
    def is_lost(self) -> bool:
        """Whether writing has failed, as the client has gone."""
        return self._writer.transport.is_closing()

    @property
    def _unread_bytes(self) -> int:
        return self._writer.transport.get_write_buffer_size() + self._waiting_bytes

    # Sending.

    def post(self, response: wire.Response) -> None:
        """Send what was not asked for, at the next flush."""
        if not self.given_up:  # else even the encoding is work for nothing, and clients can ask for a lot of it
            self._queue(wire.frame(response))

    def answer(self, response: wire.Response) -> None:
        """Answer the oldest request, at the next flush. Raises HangUpError when a fault wants that."""
        message = self.protocol.send(response)
        fault, self._answers = self._fault, self._answers + 1
        if fault is None or fault.at >= self._answers:
            self._queue(message)
            return
        self._fault = None
        say(f"fault: {fault.kind.value}")
        if fault.kind is FaultKind.TRUNCATE:
            self._queue(message[: len(message) // 2])
            raise HangUpError("a fault was asked for")
        if fault.kind is FaultKind.SILENCE:
            self._is_silent = True
        self._is_split = fault.kind is FaultKind.SPLIT
        self._queue(_GARBAGE if fault.kind is FaultKind.GARBAGE else message)

    def _queue(self, message: bytes) -> None:
        if self._is_silent or self.given_up:
            return
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self.given_up = f"it has left more than {MAX_UNREAD_BYTES} bytes unread"
            self._waiting.clear()
            self._writer.transport.abort()
            return
        self._waiting.append(message)
        self._waiting_bytes += len(message)

    def flush(self) -> None:
        """Hand everything to the system, or to what waits for it."""
        if not self._waiting:
            return
        messages, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self._writer.is_closing():
            return
        if self._is_split:
            for byte in b"".join(messages):
                self._writer.write(bytes((byte,)))
        elif self.is_real:  # a header and a body, each by itself
            for message in messages:
                self._writer.write(message[:_HEADER_BYTES])
                if len(message) > _HEADER_BYTES:
                    self._writer.write(message[_HEADER_BYTES:])
        else:
            self._writer.write(b"".join(messages))

    def send_goodbye(self) -> None:
        """Send what waits and say that nothing more will come; the client may still read to the end."""
        self.flush()
        self._is_silent = True
        if not self._writer.is_closing():
            with contextlib.suppress(OSError):  # the client may have gone a moment ago
                self._writer.write_eof()

    def close(self) -> None:
        """Send what waits and close, whether the client reads it soon or not."""
        if not self._is_silent:
            self.flush()
        self._writer.close()
        if self._unread_bytes:
            asyncio.get_running_loop().call_later(_LINGER_S, self._writer.transport.abort)

    # Receiving.

    def receive(self, data: bytes) -> None:
        """Process the bytes that have arrived."""
        self.protocol.receive_data(data)

    def next_request(self) -> wire.Request | None:
        """Return the next request, or None until more has come or the client has closed.

        Raises RemoteProtocolError; HangUpError for what the CUAUV server hangs up on, when speaking as it does.
        """
        event = self.protocol.next_event()
        if not isinstance(event, wire.Request):
            if self.is_real and self.protocol.inside_message:
                raise HangUpError("it has sent a request in pieces")
            return None
        if self.is_real and (reason := reason_to_hang_up(event)):
            raise HangUpError(reason)
        return event
