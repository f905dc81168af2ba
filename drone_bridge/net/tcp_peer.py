# SPDX-License-Identifier: Apache-2.0
"""TcpPeer: TCP connections to one host and port as a link for a LinkLoop, opened again and again; mostly one."""

import socket
from collections.abc import Callable, Sequence
from typing import Any

from drone_bridge.net import tcp
from drone_bridge.net.connector import Cancellation, Connector, LinkClosedError, LinkError, MakeTap, Selectable
from drone_bridge.net.link_loop import Connected, Disconnected, Filled, Received
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_connections import TcpConnections
from drone_bridge.wire.addresses import address_name


class TcpPeer(Connector):
    """The session hears that it is connected, its bytes, and that it is disconnected; then the link is opened again.

    Of several connections the session hears once there are all of them, in the order in which they were opened. When
    all have gone they are opened again: a session that needs all of them closes the others when it loses one.
    """

    kind = socket.SOCK_STREAM

    def __init__(
        self,
        host: str,
        port: int,
        on_failure: Callable[[str, float], None],
        *,
        connections: int = 1,
        options: StreamOptions | None = None,
        wire_log: MakeTap | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """`on_failure` gets a sentence about each attempt to connect that failed, and the seconds until the next."""
        super().__init__(host, port, on_failure, cancellation=cancellation)
        self._connections = TcpConnections(options, wire_log)
        self._count = connections
        self._peers: list[Any] = []

    def open(self) -> None:
        """Connect, and retry until that works. Raises LinkCancelledError."""
        self._peers = self._retried(self._connect_all)

    def files(self) -> Sequence[Selectable]:
        return self._connections.files()

    def receive(self) -> Received | Filled | Connected | Disconnected | None:
        """See Link. Raises LinkClosedError once the peer has gone, or was disconnected."""
        received = self._connections.receive()
        if received is None and not self._connections.has_peers:
            raise LinkClosedError(f"The connection to {address_name(self._host, self._port)} is closed.")
        return received

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send a piece on a connection, or the only one, whatever it is called. Raises LinkError without one."""
        if not self._connections.has_peers:
            raise LinkError(f"Nothing can be sent to {address_name(self._host, self._port)}: there is no connection.")
        self._connections.send(data, self._named(to))

    def has_unsent(self, peer: Any) -> bool:
        """See TcpConnections."""
        return self._connections.has_unsent(self._named(peer))

    def disconnect(self, peer: Any) -> None:
        """See StreamLink."""
        self._connections.disconnect(self._named(peer))

    def disconnect_all(self) -> None:
        self._connections.disconnect_all()

    def close(self) -> None:
        self._connections.close()
        super().close()

    def _named(self, peer: Any) -> Any:
        """Return the peer of a connection; the only one's, whatever it is called."""
        return self._peers[0] if self._count == 1 else peer

    def _connect_all(self) -> list[Any]:
        """Open all connections, or none; return their peers. Raises LinkError and LinkCancelledError."""
        opened: list[socket.socket] = []
        try:
            while len(opened) < self._count:
                opened.append(self._connect_once())
        except LinkError:
            for connected in opened:
                if peer := self._connections.add(connected):
                    self._connections.disconnect(peer)
            raise
        peers = [self._connections.add(connected) for connected in opened]
        if None in peers:
            self._connections.disconnect_all()
            raise LinkError(f"{address_name(self._host, self._port)} has closed the connection at once.")
        return peers

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        tcp.connect(connecting, address, self._cancellation)
