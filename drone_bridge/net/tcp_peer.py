# SPDX-License-Identifier: Apache-2.0
"""TcpPeer: TCP link to one host and port, by one or several connections, reopened by its LinkLoop."""

import socket
from collections.abc import Callable
from typing import Any

from drone_bridge.net import tcp
from drone_bridge.net.connector import Cancellation, Connector, LinkClosedError, LinkError, MakeTap
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, ReceivedData
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_connections import TcpConnections
from drone_bridge.wire.addresses import address_name


class TcpPeer(Connector, TcpConnections):
    """TCP client link, which is reopened after its session has handled the disconnect.

    The session is notified of several connections once all of them are open, in the order in which they were opened.
    They are reopened when all have ended: a session that needs all of them closes the others when it loses one.
    """

    kind = socket.SOCK_STREAM

    def __init__(
        self,
        host: str,
        port: int,
        on_failure: Callable[[LinkError, float], None],
        *,
        connections: int = 1,
        options: StreamOptions | None = None,
        wire_log: MakeTap | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """`on_failure` gets the error of each failed attempt to connect, and the delay until the next one, s."""
        Connector.__init__(self, host, port, on_failure, cancellation=cancellation)
        TcpConnections.__init__(self, options, wire_log)
        self._count = connections

    def open(self) -> None:
        """Connect, with retries. Raises LinkCancelledError."""
        self._retried(self._connect_all)

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        """See Link. Raises LinkClosedError once the peer has disconnected or was disconnected."""
        received = super().receive()
        if received is None and not self.has_peers:
            raise LinkClosedError(f"The connection to {address_name(self._host, self._port)} is closed.")
        return received

    def close(self) -> None:
        """See Link."""
        TcpConnections.close(self)
        Connector.close(self)

    def _connect_all(self) -> None:
        """Open all connections, or none. Raises LinkError and LinkCancelledError."""
        opened: list[socket.socket] = []
        try:
            while len(opened) < self._count:
                opened.append(self._connect_once())
        except LinkError:
            for connected in opened:
                if peer := self.add(connected):
                    self.disconnect(peer)
            raise
        peers = [self.add(connected) for connected in opened]
        if None in peers:
            self.disconnect_all()
            raise LinkError(f"{address_name(self._host, self._port)} has closed the connection at once.")

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        tcp.connect(connecting, address, self._cancellation)
