# SPDX-License-Identifier: Apache-2.0
"""One client's connection to a simulator: bytes in, requests out, and messages to be written."""

from __future__ import annotations

from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.device.quirks import Quirks, reason_to_hang_up

MAX_UNREAD_BYTES = 4 << 20  # queued for a client, which is dropped beyond that
_HEADER_BYTES = 5


class HangUpError(Exception):
    """The connection to this client is closed; the text is the reason."""


class Conversation:
    """The requests of one client and the messages to it. A Client of the world's items."""

    def __init__(self, quirks: Quirks = Quirks.NONE) -> None:
        self.is_real = quirks is Quirks.REAL
        self.protocol = (
            wire.ServerConnection(max_body_bytes=wire.MAX_REQUEST_BYTES) if self.is_real else wire.ServerConnection()
        )
        self.drop_reason: str | None = None  # set when the client is to be dropped
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    # Received.

    def receive(self, data: bytes | memoryview) -> None:
        self.protocol.receive_data(data)

    def receive_eof(self) -> None:
        self.protocol.receive_eof()

    def next_request(self) -> wire.Request | None:
        """Return the next request, or None until more is received or the client has closed.

        Raises RemoteProtocolError, and HangUpError for requests on which the CUAUV server closes the connection.
        """
        event = self.protocol.next_event()
        if not isinstance(event, wire.Request):
            if self.is_real and self.protocol.inside_message:
                raise HangUpError("it has sent a request in pieces")
            return None
        if self.is_real and (reason := reason_to_hang_up(event)):
            raise HangUpError(reason)
        return event

    # Sent.

    @property
    def unread_bytes(self) -> int:
        """How much is queued for the client."""
        return self._waiting_bytes

    def post(self, response: wire.Response) -> None:
        """Queue a message that answers no request."""
        if not self.drop_reason:  # else do not even encode it
            self.queue(wire.frame(response))

    def answer(self, response: wire.Response) -> None:
        """Queue the answer to the oldest request."""
        self.queue(self.protocol.send(response))

    def queue(self, message: bytes) -> None:
        """Queue a message, or mark the client to be dropped if too much is queued already."""
        if self.drop_reason:
            return
        if self.unread_bytes > MAX_UNREAD_BYTES:
            self.drop_reason = f"it has left more than {MAX_UNREAD_BYTES} bytes unread"
            self._waiting.clear()
            return
        self._waiting.append(message)
        self._waiting_bytes += len(message)

    def take(self) -> list[bytes]:
        """Return what is to be written, in pieces as the CUAUV server sends them: headers and bodies separately."""
        messages, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not self.is_real:
            return [b"".join(messages)] if messages else []
        pieces = []
        for message in messages:
            pieces += [message[:_HEADER_BYTES], message[_HEADER_BYTES:]]
        return [piece for piece in pieces if piece]
