# SPDX-License-Identifier: Apache-2.0
"""TcpPort: TCP listener as a link for a LinkLoop, for any number of peers.

The session decides which peers stay connected. See `session.clients`.
"""

import errno
import math
import socket

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Backoff, MakeTap
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, ReceivedData
from drone_bridge.net.tcp import listening_socket
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_connections import TcpConnections

#: Sizes of small system buffers: received data go stale there, and unread sent data are not counted there.
RECEIVE_BUFFER_BYTES = 64 * 1024
SEND_BUFFER_BYTES = 64 * 1024
#: Delay before accepting again after running out of descriptors or memory.
ACCEPT_RETRY_S = 0.5
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BACKLOG = 16


class TcpPort(TcpConnections):
    """TCP listener, open from its creation."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        options: StreamOptions | None = None,
        wire_log: MakeTap | None = None,
        has_small_buffers: bool = False,
    ) -> None:
        """Bind and listen; port 0 picks a free one. Raises LinkError if the address is not available.

        Args:
            host: our own address; :: listens on all interfaces, IPv4 included.
            port: the port to listen on.
            options: options of each connection.
            wire_log: factory of the taps that log the bytes of each connection.
            has_small_buffers: limit the system's buffers of unread data, for protocols with small messages.
        """
        self._listening = listening_socket(host, port, backlog=_BACKLOG)
        super().__init__(options, wire_log)
        self.backoff = Backoff()
        self._has_small_buffers = has_small_buffers
        self._listening.setblocking(False)
        if has_small_buffers:  # inherited by accepted connections
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._accepts_from_s = math.inf  # retry time while accepting is suspended
        self.watch(self._listening, self._accept)

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def open(self) -> None:
        """Do nothing: the port is open from the beginning."""

    def cancel(self) -> None:
        """Do nothing: `open` never waits."""

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        """See Link."""
        if self._accepts_from_s < math.inf and elapsed_s() >= self._accepts_from_s:
            self._accepts_from_s = math.inf
            self.watch(self._listening, self._accept)
        return super().receive()

    def close(self) -> None:
        """See Link."""
        self._listening.close()
        super().close()

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                connected, _ = self._listening.accept()
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:  # the peer stays in the backlog: an immediate retry would fail too
                    self._accepts_from_s = elapsed_s() + ACCEPT_RETRY_S
                    self.unwatch(self._listening)
                return
            if self._has_small_buffers:  # unread data then queue up in this process, where they are counted
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            self.add(connected)
