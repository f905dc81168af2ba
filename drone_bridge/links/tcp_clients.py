# SPDX-License-Identifier: Apache-2.0
"""Several TCP clients of one server, for an asyncio loop. Unread data is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from drone_bridge.links import tcp_options
from drone_bridge.links.connector import address_name
from drone_bridge.links.errors import reason
from drone_bridge.links.tcp_listener import listening_socket

if TYPE_CHECKING:
    from drone_bridge.links.wire_log import ConnectionLog, WireLog

MAX_UNREAD_BYTES: Final = 256 * 1024  # of what a client does not take; one that lets more pile up is given up
SEND_BUFFER_BYTES: Final = 64 * 1024
CLOSED_BY_PEER: Final = "it has closed the connection"
CLOSED_BY_US: Final = "the connection was closed here"
_BACKLOG: Final = 16


class Client(Protocol):
    """The handler of one client."""

    def receive_data(self, data: bytes) -> None:
        """Handle received bytes. May raise to end the connection, with the text as the reason."""

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
        wire_log: WireLog | None = None,
    ) -> None:
        """Bind; port 0 takes a free one. Clients are served when `start` has been awaited.

        Args:
            host: the address of our own side.
            port: where to listen.
            begin: is given each new connection, and returns what is done with it.
            most: clients at once; more are refused.
            ends: what Client may raise; anything else is a fault of our own, and asyncio's to report.
            on_refused: gets the address of each one that is.
            wire_log: where to log the bytes of every connection.

        Raises LinkError when the address is not available.
        """
        self.ends = ends
        self._begin, self._most, self._on_refused, self._wire_log = begin, most, on_refused, wire_log
        self._server: asyncio.Server | None = None
        self.connections: list[Connection] = []
        self._socket = listening_socket(host, port, backlog=_BACKLOG)
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
        """Add a connection unless there are too many; return whether it was added."""
        if len(self.connections) >= self._most:
            self._on_refused(connection.peer)
            return False
        self.connections.append(connection)
        return True

    def begin(self, connection: Connection) -> Client:
        """Return the handler of a new connection."""
        return self._begin(connection)

    def open_log(self, own: str, peer: str) -> ConnectionLog | None:
        return self._wire_log.open("tcp", own, peer) if self._wire_log else None


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, clients: TcpClients) -> None:
        self._clients = clients
        self._client: Client | None = None
        self._log: ConnectionLog | None = None
        self._reason = ""  # why it ends
        self.peer = ""

    # What is done with it.

    def send(self, data: bytes) -> None:
        """Send, or queue until the client reads; a client that does not read is dropped."""
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.abort(f"it has left {MAX_UNREAD_BYTES // 1024} KiB unread")
            return
        self._transport.write(data)
        if self._log:
            self._log.sent(memoryview(data))

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
        self._log = self._clients.open_log(address_name(*transport.get_extra_info("sockname")[:2]), self.peer)
        self._client = self._clients.begin(self)

    def data_received(self, data: bytes) -> None:
        if self._log:
            self._log.received([memoryview(data)], len(data))
        self._run(lambda client: client.receive_data(data))

    def eof_received(self) -> None:
        """Pass on the end of the client's stream, and close."""
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

    def _leave(self) -> None:
        client, self._client = self._client, None
        if self in self._clients.connections:
            self._clients.connections.remove(self)
        if self._log:
            self._log.close()
            self._log = None
        if client:
            client.leave(self._reason or CLOSED_BY_PEER)
