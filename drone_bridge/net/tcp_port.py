# SPDX-License-Identifier: Apache-2.0
"""TcpPort: a TCP port of this machine as a link for a LinkLoop, for any number of peers at once.

Who may stay is for the session to say, see `session.clients`.
"""

import errno
import math
import socket

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Backoff, MakeTap
from drone_bridge.net.link_loop import Connected, Disconnected, Filled, Received
from drone_bridge.net.tcp import listening_socket
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_connections import TcpConnections

#: What of a peer may wait in the system, where it grows old, and of what it does not read.
RECEIVE_BUFFER_BYTES = 64 * 1024
SEND_BUFFER_BYTES = 64 * 1024
#: When there is no room for another connection in this process, until that is tried again.
ACCEPT_RETRY_S = 0.5
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BACKLOG = 16


class TcpPort(TcpConnections):
    """Listens from the beginning."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        options: StreamOptions | None = None,
        wire_log: MakeTap | None = None,
        has_small_buffers: bool = False,
    ) -> None:
        """Bind and listen; port 0 takes a free one. Raises LinkError when the address is not available.

        Args:
            host: the address of our own side; :: is all interfaces, with IPv4.
            port: where to listen.
            options: of each connection.
            wire_log: where to log the bytes of each connection.
            has_small_buffers: keep little in the system of what either side does not read: for small messages.
        """
        self._listening = listening_socket(host, port, backlog=_BACKLOG)
        super().__init__(options, wire_log)
        self.backoff = Backoff()
        self._has_small_buffers = has_small_buffers
        self._listening.setblocking(False)
        if has_small_buffers:  # connections inherit it
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._accepts_from_s = math.inf  # when it accepts none
        self.watch(self._listening, self._accept)

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def open(self) -> None:
        """Do nothing: it is open."""

    def cancel(self) -> None:
        """Do nothing: nothing waits."""

    def receive(self) -> Received | Filled | Connected | Disconnected | None:
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
                if error.errno in _OUT_OF_RESOURCES:  # the peer stays in the queue: asking at once would not help
                    self._accepts_from_s = elapsed_s() + ACCEPT_RETRY_S
                    self.unwatch(self._listening)
                return
            if self._has_small_buffers:  # what nobody reads piles up here, where it is counted
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            self.add(connected)
