# SPDX-License-Identifier: Apache-2.0
"""One client's conversation with a simulator: bytes in, requests out, and what waits to be written. No sockets."""

from __future__ import annotations

from typing import Final

from drone_bridge.protocols import simulator as wire
from drone_bridge.vehicle_side.simulator.quirks import Quirks, reason_to_hang_up

MAX_UNREAD_BYTES: Final = 4 << 20  # of what a client does not take; one that lets more pile up is given up
_HEADER_BYTES: Final = 5


class HangUpError(Exception):
    """The connection to this client is closed; the text says why."""


class Conversation:
    """What one client has asked, and what is to be written to it. It is a Client of the world's items."""

    def __init__(self, quirks: Quirks = Quirks.NONE) -> None:
        self.is_real = quirks is Quirks.REAL
        self.protocol = (
            wire.ServerConnection(max_body_bytes=wire.MAX_REQUEST_BYTES) if self.is_real else wire.ServerConnection()
        )
        self.given_up: str | None = None  # why
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    # What comes.

    def receive(self, data: bytes | memoryview) -> None:
        """Take bytes that have arrived."""
        self.protocol.receive_data(data)

    def receive_eof(self) -> None:
        """Note that no more bytes will come."""
        self.protocol.receive_eof()

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

    # What goes.

    @property
    def unread_bytes(self) -> int:
        """How much the client has still to take."""
        return self._waiting_bytes

    def post(self, response: wire.Response) -> None:
        """Send what was not asked for."""
        if not self.given_up:  # else even the encoding is work for nothing, and clients can ask for a lot of it
            self.queue(wire.frame(response))

    def answer(self, response: wire.Response) -> None:
        """Answer the oldest request."""
        self.queue(self.protocol.send(response))

    def queue(self, message: bytes) -> None:
        """Have a message written next, unless the client has let too much pile up: then it is given up."""
        if self.given_up:
            return
        if self.unread_bytes > MAX_UNREAD_BYTES:
            self.given_up = f"it has left more than {MAX_UNREAD_BYTES} bytes unread"
            self._waiting.clear()
            return
        self._waiting.append(message)
        self._waiting_bytes += len(message)

    def take(self) -> list[bytes]:
        """Return what is to be written, each in a piece of its own: the CUAUV server sends headers by themselves."""
        messages, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not self.is_real:
            return [b"".join(messages)] if messages else []
        pieces = []
        for message in messages:
            pieces += [message[:_HEADER_BYTES], message[_HEADER_BYTES:]]
        return [piece for piece in pieces if piece]
