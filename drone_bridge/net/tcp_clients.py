# SPDX-License-Identifier: Apache-2.0
"""Several TCP clients of one server, for an asyncio loop.

None of them can hold up the others or what else the loop has to do in time: what is read of each and handled per turn
is bounded, and so are what it leaves unread, how long it takes for a message, and how long it has a place for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

from drone_bridge.net import tcp as tcp_options
from drone_bridge.net.connector import (
    RECEIVED,
    SENT,
    Backoff,
    Cancellation,
    LinkCancelledError,
    MakeTap,
    Tap,
    reason,
)
from drone_bridge.net.tcp_listener import listening_socket
from drone_bridge.wire.addresses import address_name

MAX_UNREAD_BYTES = 256 * 1024  # of what a client does not take; one that lets more pile up is given up
SEND_BUFFER_BYTES = 64 * 1024
RECEIVE_BUFFER_BYTES = 64 * 1024  # in the system, where messages of a client that floods us grow old
#: How long it may take until everybody has had a turn.
ROUND_S = 0.005
#: From the connection to the end of the first message, unless a server allows less.
FIRST_MESSAGE_S = 60.0
#: From the first byte of a message to its last.
WHOLE_MESSAGE_S = 10.0
#: Who has sent a message within this time keeps its place when more come than there is room for.
KEEPS_PLACE_S = 1.0
CLOSED_BY_PEER = "it has closed the connection"
CLOSED_BY_US = "the connection was closed here"
_BACKLOG = 16


class Client(Protocol):
    """The handler of one client."""

    @property
    def inside_message(self) -> bool:
        """Whether part of a message was received, after `handle_next` has returned False."""

    def receive_data(self, data: bytes) -> None:
        """Take received bytes. May raise to end the connection, with the text as the reason."""

    def handle_next(self) -> bool:
        """Handle one of the messages received; return whether there was one. May raise as `receive_data` does."""

    def flush(self) -> None:
        """Send what has been queued while messages were handled."""

    def receive_eof(self) -> None:
        """Handle the end of the client's stream. May raise as `receive_data` does."""

    def leave(self, reason: str) -> None:
        """Handle the end of the connection."""


class TcpClients:
    """Accepts and serves clients. For the loop's thread."""

    def __init__(
        self,
        host: str,
        port: int,
        begin: Callable[[Connection], Client],
        *,
        most: int,
        ends: tuple[type[Exception], ...],
        on_refused: Callable[[str], None],
        first_message_s: float = FIRST_MESSAGE_S,
        wire_log: MakeTap | None = None,
    ) -> None:
        """Bind; port 0 takes a free one. Clients are served when `start` has been awaited.

        Args:
            host: the address of our own side.
            port: where to listen.
            begin: is given each new connection, and returns what is done with it.
            most: clients at once. One more takes the place of the one silent for longest, and is refused if
                all of them have sent something a moment ago.
            ends: what Client may raise; anything else is a fault of our own, and asyncio's to report.
            on_refused: gets the address of each one that is.
            first_message_s: how long a client may take for its first message.
            wire_log: where to log the bytes of every connection.

        Raises LinkError when the address is not available.
        """
        self.ends = ends
        self._begin, self._most, self._on_refused, self._wire_log = begin, most, on_refused, wire_log
        self.first_message_s = first_message_s
        self._server: asyncio.Server | None = None
        self.connections: list[Connection] = []
        self._socket = listening_socket(host, port, backlog=_BACKLOG)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)  # connections inherit it
        #: Where it listens.
        self.port = int(self._socket.getsockname()[1])

    async def start(self) -> None:
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: Connection(self), sock=self._socket)

    def hang_up(self, reason: str = CLOSED_BY_US) -> None:
        """Close all connections, after sending queued data as far as it fits the system's buffers."""
        for connection in tuple(self.connections):
            connection.end(reason)

    def close(self) -> None:
        """Stop listening. The connections must be closed before."""
        if self._server:
            self._server.close()
        self._socket.close()

    # For connections.

    def admit(self, connection: Connection) -> bool:
        """Add a connection unless there are too many that are in use; return whether it was added."""
        if len(self.connections) >= self._most:
            idle = min(self.connections, key=lambda other: (other.has_spoken, other.heard_s))
            silence_s = time.monotonic() - idle.heard_s
            if idle.has_spoken and silence_s < KEEPS_PLACE_S:
                self._on_refused(connection.peer)
                return False
            idle.drop(f"it has been silent for {silence_s:.1f} s, and {connection.peer} takes its place")
        self.connections.append(connection)
        return True

    @property
    def turn_s(self) -> float:
        """How long the turn of one connection may last."""
        return ROUND_S / max(1, len(self.connections))

    def begin(self, connection: Connection) -> Client:
        """Return the handler of a new connection."""
        return self._begin(connection)

    def tap(self, own: str, peer: str) -> Tap | None:
        return self._wire_log("tcp", own, peer) if self._wire_log else None


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, clients: TcpClients) -> None:
        self._clients = clients
        self._client: Client | None = None
        self._tap: Tap | None = None
        self._reason = ""  # why it ends
        self._deadline: asyncio.TimerHandle | None = None  # of the first message, and of each that has begun
        self._has_begun = False  # one that is not complete
        self._is_turn_due = False
        self.peer = ""
        #: Whether it has ever sent a message, and when it did so last, on the monotonic clock.
        self.has_spoken = False
        self.heard_s = time.monotonic()

    # What is done with it.

    def send(self, data: bytes) -> None:
        """Send, or queue until the client reads; a client that does not read is dropped."""
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.abort(f"it has left {MAX_UNREAD_BYTES // 1024} KiB unread")
            return
        self._transport.write(data)
        if self._tap:
            self._tap(SENT, data)

    def abort(self, why: str = CLOSED_BY_US) -> None:
        """Close at once, discarding what is queued. The handler is notified later, from the loop."""
        self._reason = self._reason or why
        self._transport.abort()

    def close(self, why: str = CLOSED_BY_US) -> None:
        """Close when everything is sent. The handler is notified later, from the loop."""
        self._reason = self._reason or why
        self._transport.close()

    def end(self, why: str) -> None:
        """Close when everything is sent, and notify the handler now."""
        self.close(why)
        self._leave()

    def drop(self, why: str) -> None:
        """Close at once, and notify the handler now."""
        self.abort(why)
        self._leave()

    def proceed(self) -> None:
        """Handle what has been received, for as long as a turn lasts; the rest has to wait for the next turns."""
        self._run(self._take_turn)

    # For asyncio.

    def connection_made(self, transport: Any) -> None:
        """Admit the client, or refuse it."""
        self._transport: asyncio.Transport = transport
        host, port = transport.get_extra_info("peername")[:2]
        self.peer = address_name(host, port)
        if not self._clients.admit(self):
            transport.abort()
            return
        connected = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # it may have gone again
            tcp_options.set_options(connected)
            tcp_options.expect_acknowledgements(connected)
            # What nobody reads piles up here, where it is counted, and not in the system.
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._tap = self._clients.tap(address_name(*transport.get_extra_info("sockname")[:2]), self.peer)
        self._expect_message(self._clients.first_message_s, "first message")
        self._client = self._clients.begin(self)

    def data_received(self, data: bytes) -> None:
        if self._tap:
            self._tap(RECEIVED, data)
        self._run(lambda client: client.receive_data(data))
        self.proceed()

    def eof_received(self) -> None:
        """Pass on the end of the client's stream, and close."""
        if self._tap:
            self._tap(RECEIVED, b"")
        self._run(lambda client: client.receive_eof())

    def connection_lost(self, error: Exception | None) -> None:
        if error and not self._reason:
            self._reason = f"the connection was lost: {reason(error) if isinstance(error, OSError) else error}"
        self._leave()

    def _run(self, task: Callable[[Client], None]) -> None:
        if self._client is None or self._transport.is_closing():
            return
        try:
            task(self._client)
        except self._clients.ends as error:
            self.close(str(error))

    def _take_turn(self, client: Client) -> None:
        ends_s = time.monotonic() + self._clients.turn_s
        is_over = has_spoken = False
        try:
            while not is_over and client.handle_next():
                has_spoken = True
                is_over = time.monotonic() >= ends_s
        finally:
            client.flush()
        if has_spoken:
            self.has_spoken, self.heard_s = True, time.monotonic()
            self._expect_nothing()
        if is_over:
            self._transport.pause_reading()
            if not self._is_turn_due:
                self._is_turn_due = True
                asyncio.get_running_loop().call_soon(self._take_due_turn)
            return
        self._transport.resume_reading()
        if client.inside_message and not self._has_begun:
            self._expect_message(WHOLE_MESSAGE_S, "message")
            self._has_begun = True

    def _take_due_turn(self) -> None:
        self._is_turn_due = False
        self.proceed()

    def _expect_message(self, within_s: float, what: str) -> None:
        self._expect_nothing()
        late = f"it has not completed a {what} within {within_s:g} s"
        self._deadline = asyncio.get_running_loop().call_later(within_s, self.drop, late)

    def _expect_nothing(self) -> None:
        self._has_begun = False
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _leave(self) -> None:
        self._expect_nothing()
        client, self._client = self._client, None
        if self in self._clients.connections:
            self._clients.connections.remove(self)
        if client:
            client.leave(self._reason or CLOSED_BY_PEER)


# The endpoint of a thread that serves all of them as one link.


class Listening:
    """A stream for that thread: all clients together."""

    def __init__(self, clients: TcpClients, host: str) -> None:
        self.clients = clients
        self.peer = f"clients on {address_name(host, clients.port)}"

    def close(self) -> None:
        self.clients.close()


class ListeningEndpoint:
    """Listens at once, and again if serving fails."""

    def __init__(self, host: str, cancellation: Cancellation, listen: Callable[[int | None], TcpClients]) -> None:
        """`listen` gets the previous port, if any. Raises LinkError as it does."""
        self.backoff = Backoff()
        self._host, self._cancellation, self._listen = host, cancellation, listen
        self._first: TcpClients | None = listen(None)
        self.port = self._first.port

    def open(self) -> Listening:
        """Return the listening stream. Raises LinkCancelledError and LinkError."""
        if self._first:
            clients, self._first = self._first, None
            return Listening(clients, self._host)
        if self._cancellation.wait(self.backoff.next_delay_s()):
            raise LinkCancelledError("Listening was cancelled.")
        return Listening(self._listen(self.port), self._host)

    def close(self) -> None:
        """Stop listening if `open` was never called."""
        if self._first:
            self._first.close()
