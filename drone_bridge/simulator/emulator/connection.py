# SPDX-License-Identifier: Apache-2.0
"""One client of the emulated simulator: its send queue, and injected faults."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from enum import Enum

from drone_bridge.programs.faults import Fault
from drone_bridge.programs.program import say
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.device.requests import HangUpError, Quirks, ServedClient

_BEHIND_BYTES = 256 * 1024  # unread, when there is reason to wait for a client if time does not press
_SEND_BUFFER_BYTES = 256 * 1024  # in the system
_LINGER_S = 1.0  # how long a client gets to read what was sent before its connection was closed
_GARBAGE = b"\x03\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00\x00"  # a list of 9 entities with room for one


class FaultKind(str, Enum):
    """Faults that can replace one answer to the first client."""

    TRUNCATE = "truncate"  # half of the answer, then the connection is closed
    GARBAGE = "garbage"  # a list that is longer than its message
    SILENCE = "silence"  # nothing is sent any more
    SPLIT = "split"  # from then on each byte is sent by itself


class Connection(ServedClient):
    """A connected client."""

    def __init__(self, peer: str, writer: asyncio.StreamWriter, quirks: Quirks, fault: Fault[FaultKind] | None) -> None:
        super().__init__(quirks)
        self.peer = peer
        self._writer = writer
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
        return self.unread_bytes > _BEHIND_BYTES

    @property
    def is_lost(self) -> bool:
        """Whether writing has failed because the client is gone."""
        return self._writer.transport.is_closing()

    @property
    def unread_bytes(self) -> int:
        """How much is queued for the client."""
        return self._writer.transport.get_write_buffer_size() + super().unread_bytes

    # Sending.

    def answer(self, response: wire.Response) -> None:
        """Queue the answer to the oldest request, or inject the fault. Raises HangUpError."""
        message = self.protocol.send(response)
        fault, self._answers = self._fault, self._answers + 1
        if fault is None or fault.at >= self._answers:
            self.queue(message)
            return
        self._fault = None
        say(f"fault: {fault.kind.value}")
        if fault.kind is FaultKind.TRUNCATE:
            self.queue(message[: len(message) // 2])
            raise HangUpError("a fault was requested")
        if fault.kind is FaultKind.SILENCE:
            self._is_silent = True
        self._is_split = fault.kind is FaultKind.SPLIT
        self.queue(_GARBAGE if fault.kind is FaultKind.GARBAGE else message)

    def queue(self, message: bytes) -> None:
        """See ServedClient."""
        if self._is_silent:
            return
        was_given_up = self.drop_reason
        super().queue(message)
        if self.drop_reason and not was_given_up:
            self._writer.transport.abort()

    def flush(self) -> None:
        pieces = self.take()
        if self._writer.is_closing():
            return
        for piece in pieces:
            if self._is_split:
                for byte in piece:
                    self._writer.write(bytes((byte,)))
            else:
                self._writer.write(piece)

    def send_goodbye(self) -> None:
        """Write everything and shut down the sending side."""
        self.flush()
        self._is_silent = True
        if not self._writer.is_closing():
            with contextlib.suppress(OSError):  # the client may have gone a moment ago
                self._writer.write_eof()

    def close(self) -> None:
        """Write everything and close without waiting for the client."""
        if not self._is_silent:
            self.flush()
        self._writer.close()
        if self.unread_bytes:
            asyncio.get_running_loop().call_later(_LINGER_S, self._writer.transport.abort)
