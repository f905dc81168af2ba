# SPDX-License-Identifier: Apache-2.0
"""TcpConnection: one TCP connection that never blocks, for links of a LinkLoop."""

import contextlib
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drone_bridge.net import tcp
from drone_bridge.net.connector import RECEIVED, SENT, LinkError, MakeTap, reason
from drone_bridge.net.link_loop import Filled, Received
from drone_bridge.wire.addresses import peer_name

#: What a peer may leave unread, beside what the system keeps for it.
MAX_UNREAD_BYTES = 256 * 1024
#: How long a peer has, by default and at most when the link is closed, to read the last bytes and close as well.
LEAVE_S = 0.3
_DRAIN_BYTES = 65536
_MAX_DRAINS = 16  # at once


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How the connections of a link are read and watched."""

    chunk_bytes: int = 65536
    """What is read of one at a time, so what a session parses before another peer has its turn."""
    expects_acknowledgements: bool = False
    """Whether a peer that acknowledges nothing is given up, see `tcp.expect_acknowledgements`."""
    acknowledges_at_once: bool = False
    """Whether acknowledgements are sent without delay, where the system can.

    For peers that send a message in pieces with Nagle's algorithm on: each piece waits for the acknowledgement of the
    previous one, which is otherwise delayed by 40 ms. Not when all that was asked for has come: then the message is
    whole, and its answer acknowledges it.
    """
    waits_for_acknowledgements: bool = False
    """Whether small pieces wait until what was sent is acknowledged (Nagle's algorithm), as by default elsewhere."""
    max_unread_bytes: int = MAX_UNREAD_BYTES
    """What a peer may leave unread before it is given up."""
    linger_s: float = LEAVE_S
    """How long a peer that was disconnected has to read to the end and close as well."""
    max_lingering: int = 32
    """How many of those there may be; of more, the oldest is closed."""
    memory: "Callable[[StreamPeer], Sequence[memoryview]] | None" = None
    """Hands out the memory into which a peer's next bytes are read, piece by piece; new bytes by default."""


class StreamEndedError(LinkError):
    """The peer has ended its stream regularly."""


class StreamPeer:
    """One connection's peer, as sessions have it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class TcpConnection:
    """Reads chunks, and sends each piece as one, as soon as the system takes it.

    A failure to send is raised by `read`, once it has returned what the peer had sent before.
    """

    def __init__(self, connected: socket.socket, options: StreamOptions, wire_log: MakeTap | None = None) -> None:
        """Take over a connected socket. Raises OSError and closes it if the peer has gone already."""
        try:
            connected.setblocking(False)
            tcp.set_options(connected)
            if options.expects_acknowledgements:
                tcp.expect_acknowledgements(connected)
            if options.waits_for_acknowledgements:
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
            self.peer = StreamPeer(peer_name(connected.getpeername()))
            own = peer_name(connected.getsockname())
        except OSError:
            connected.close()
            raise
        self._socket, self._chunk_bytes, self._memory = connected, options.chunk_bytes, options.memory
        self._quickacks = options.acknowledges_at_once and hasattr(socket, "TCP_QUICKACK")
        self._tap = wire_log("tcp", own, self.peer.name) if wire_log else None
        self._unsent: deque[memoryview] = deque()
        #: What the peer has not taken.
        self.unsent_bytes = 0
        self._failure = ""  # of sending
        self._is_shut = False
        #: Whether the peer has closed for writing, while it is left.
        self.has_ended = False

    @property
    def has_unsent(self) -> bool:
        """Whether the peer has not taken everything."""
        return bool(self._unsent)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> Received | Filled | None:
        """Return the next chunk, None if nothing has arrived. Raises LinkError with the reason when it is over."""
        buffers = self._memory(self.peer) if self._memory else ()
        try:
            data = b"" if buffers else self._socket.recv(self._chunk_bytes)
            count = self._socket.recvmsg_into(buffers)[0] if buffers else len(data)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinkError(f"The connection to {self.peer} was lost: {reason(error)}.") from error
        if self._tap:
            self._tap(RECEIVED, _head(buffers, count) if buffers else data)
        if not count:
            if self._failure:
                raise LinkError(f"The connection to {self.peer} was lost: {self._failure}.")
            raise StreamEndedError(f"{self.peer} has closed the connection.")
        if self._quickacks and count < (sum(map(len, buffers)) if buffers else self._chunk_bytes):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # Linux goes back to delays by itself
        return Filled(count, self.peer) if buffers else Received(data, self.peer)

    def flush(self, piece: bytes | memoryview = b"") -> None:
        """Send what waits, then a further piece, as far as the system takes them; the rest waits."""
        if piece and not self._failure:
            self._unsent.append(memoryview(piece))
            self.unsent_bytes += len(piece)
        while self._unsent:
            piece = self._unsent[0]
            try:
                count = self._socket.send(piece)
            except BlockingIOError:
                return
            except OSError as error:
                self._failure = reason(error)
                self._unsent.clear()
                return
            if self._tap:
                self._tap(SENT, piece[:count])
            self.unsent_bytes -= count
            if count < len(piece):
                self._unsent[0] = piece[count:]
            else:
                self._unsent.popleft()

    def has_left(self) -> bool:
        """Send the rest, close for writing, discard received bytes, and return whether the peer has closed as well."""
        self.flush()
        try:
            if not self._unsent and not self._is_shut:
                self._socket.shutdown(socket.SHUT_WR)
                self._is_shut = True
            for _ in range(_MAX_DRAINS):
                data = self._socket.recv(_DRAIN_BYTES)
                if self._tap:
                    self._tap(RECEIVED, data)
                if not data:
                    self.has_ended = True
                    return not self._unsent
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def close(self) -> None:
        """Close at once."""
        with contextlib.suppress(OSError):
            self._socket.close()


def _head(buffers: Sequence[memoryview], count: int) -> bytes:
    """Return the first bytes of several buffers."""
    parts = []
    for buffer in buffers:
        parts.append(buffer[:count])
        count -= len(parts[-1])
    return b"".join(parts)
