# SPDX-License-Identifier: Apache-2.0
"""TcpConnection: non-blocking TCP connection, for links of a LinkLoop."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from drone_bridge.net import tcp
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import RECEIVED, SENT, LinkError, MakeTap, no_log, reason
from drone_bridge.net.last_words import Outlet
from drone_bridge.net.link_loop import FilledBuffer, ReceivedData
from drone_bridge.net.send_queue import SendQueue
from drone_bridge.wire.addresses import peer_name

#: Limit of the send buffer of a peer, beside the system's own buffer.
MAX_UNREAD_BYTES = 256 * 1024
#: Default linger time, in which a peer can read the last bytes and close. Also the longest when a link is closed.
LEAVE_S = 0.3
_DRAIN_BYTES = 65536
_MAX_DRAINS = 16  # per call


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of the connections of a link."""

    chunk_bytes: int = 65536
    """Size of one read, and so of the data that a session parses before the next peer's turn."""
    expects_acknowledgements: bool = False
    """Whether a peer that does not acknowledge times out. See `tcp.expect_acknowledgements`."""
    acknowledges_at_once: bool = False
    """Whether acknowledgements are sent without delay, if the system supports that.

    For peers that send a message in pieces with Nagle's algorithm enabled: each piece waits for the acknowledgement of
    the previous one, which is otherwise delayed by 40 ms. Skipped after a read that fills its buffer: the message is
    then complete, and the response acknowledges it.
    """
    waits_for_acknowledgements: bool = False
    """Whether Nagle's algorithm is enabled: small pieces wait until earlier ones are acknowledged."""
    max_unread_bytes: int = MAX_UNREAD_BYTES
    """Limit of the send buffer of a peer, beyond which it is disconnected."""
    linger_s: float = LEAVE_S
    """How long a disconnected peer has to read to the end and close, s."""
    max_lingering: int = 32
    """Limit of such lingering peers. Beyond it the oldest is closed."""
    memory: "Callable[[StreamPeer], Sequence[memoryview]] | None" = None
    """Returns the buffers into which a peer's next bytes are read. By default each read allocates new bytes."""


class StreamEndedError(LinkError):
    """Regular end of a stream by the peer."""


class StreamPeer:
    """Peer of a connection, as sessions refer to it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class TcpConnection:
    """Non-blocking TCP connection with a send queue, which is written as fast as the system accepts it.

    A failure to send is raised by `read`, after it has returned the data that the peer had sent before.
    """

    def __init__(self, connected: socket.socket, options: StreamOptions, wire_log: MakeTap | None = None) -> None:
        """Take ownership of a connected socket. Closes it and raises OSError if the peer has already disconnected."""
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
        self._tap = (wire_log or no_log)("tcp", own, self.peer.name)
        self.unsent = SendQueue()
        self._dropped = 0
        self._failure = ""  # of sending
        self._is_shut = self._is_leaving = False
        #: Whether the peer has closed for writing too, while this side leaves.
        self.has_ended = False

    @property
    def has_unsent(self) -> bool:
        """Whether the send queue holds data."""
        return bool(self.unsent.pieces)

    @property
    def outlet(self) -> Outlet:
        """See OutletLink."""
        return Outlet(self, queue=self.unsent, connection=self._socket)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> ReceivedData | FilledBuffer | None:
        """Return the next chunk, or None if nothing has arrived. Raises LinkError when the connection has ended."""
        buffers = self._memory(self.peer) if self._memory else ()
        try:
            data = b"" if buffers else self._socket.recv(self._chunk_bytes)
            count = self._socket.recvmsg_into(buffers)[0] if buffers else len(data)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinkError(f"The connection to {self.peer} was lost: {reason(error)}.") from error
        for part in _parts(buffers, count) if count and buffers else (data,):
            self._tap(RECEIVED, part)
        if not count:
            if self._failure:
                raise LinkError(f"The connection to {self.peer} was lost: {self._failure}.")
            raise StreamEndedError(f"{self.peer} has closed the connection.")
        if self._quickacks and count < (sum(map(len, buffers)) if buffers else self._chunk_bytes):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # Linux resets it by itself
        return FilledBuffer(count, self.peer) if buffers else ReceivedData(data, self.peer)

    def flush(
        self,
        piece: bytes | memoryview = b"",
        rest: bytes = b"",
        until_s: float | None = None,
        decided: Callable[[bool], None] = lambda is_sent: None,
    ) -> None:
        """Append a piece to the send queue, and write as much of the queue as the system accepts.

        `rest` is that of the piece's message, which follows in later pieces. `until_s` see `Send`.
        """
        if piece and not self._failure:
            self.unsent.put(piece, rest, until_s=until_s, decided=decided)
        elif piece:
            decided(False)
        while True:
            if self.unsent.limited:
                self._dropped += self.unsent.drop_stale(elapsed_s(), is_leaving=self._is_leaving)
            if not self.unsent.pieces:
                return
            data = self.unsent.pieces[0].data
            try:
                count = self._socket.send(data)
            except BlockingIOError:
                return
            except OSError as error:
                self._failure = reason(error)
                self.unsent.clear()
                return
            self._tap(SENT, data[:count])
            self.unsent.written(count)
            if count < len(data):
                return  # before the rest is written, the loop looks for a stall, in which the child completes it

    def take_dropped(self) -> int:
        """Return the number of stale messages that were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def has_left(self) -> bool:
        """Send the rest, close for writing, and discard received bytes. Return True once the peer has closed too.

        Messages with a time limit are dropped: whoever waits for their effect has been told of the disconnection.
        """
        self._is_leaving = True
        self.flush()
        try:
            if not self.unsent.pieces and not self._is_shut:
                self._socket.shutdown(socket.SHUT_WR)
                self._is_shut = True
            for _ in range(_MAX_DRAINS):
                data = self._socket.recv(_DRAIN_BYTES)
                self._tap(RECEIVED, data)
                if not data:
                    self.has_ended = True
                    return not self.unsent.pieces
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def close(self) -> None:
        """Close at once."""
        with contextlib.suppress(OSError):
            self._socket.close()


def _parts(buffers: Sequence[memoryview], count: int) -> Iterator[memoryview]:
    """Yield the first bytes of several buffers."""
    for buffer in buffers:
        if count > 0:
            yield buffer[:count]
        count -= len(buffer)
