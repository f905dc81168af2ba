# SPDX-License-Identifier: Apache-2.0
"""TcpConnections: base class for links with any number of TCP connections.

No connection can block the others. They are read in turn, chunk by chunk. The send queue of each is bounded. A peer
that is disconnected gets some time to read to the end.
"""

import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from drone_bridge.net.connector import LinkError, MakeTap, Selectable
from drone_bridge.net.last_words import Outlet
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, ReceivedData
from drone_bridge.net.tcp_connection import LEAVE_S, StreamEndedError, StreamOptions, StreamPeer, TcpConnection
from drone_bridge.net.tcp_leaving import LeavingConnections

#: Chunks that are read before waiting connections are accepted.
MAX_READ_BEFORE = 16


class TcpConnections:
    """TCP connections with one selector. For the loop's thread only."""

    def __init__(self, options: StreamOptions | None = None, wire_log: MakeTap | None = None) -> None:
        self._options, self._wire_log = options or StreamOptions(), wire_log
        self._selector = selectors.DefaultSelector()
        self._by_peer: dict[StreamPeer, TcpConnection] = {}
        self._ready: deque[TcpConnection] = deque()  # connections that are readable
        self._calls: list[Callable[[], None]] = []  # pending callbacks of other watched files
        self._events: deque[ReceivedData | FilledBuffer | Connected | Disconnected] = deque()
        self._leaving = LeavingConnections(self._options.linger_s, self._options.max_lingering)
        self._has_looked = False  # since the last None of `receive`
        self._read_before = 0  # chunks read while a callback was pending

    @property
    def has_peers(self) -> bool:
        """Whether any peer is connected."""
        return bool(self._by_peer)

    def files(self) -> Sequence[Selectable]:
        """Return the selector, which becomes readable when a connection is readable, or writable with data queued."""
        return (self._selector,)

    def watch(self, file: Selectable, call: Callable[[], None]) -> None:
        """Register a callback for when another file is readable."""
        self._selector.register(file.fileno(), selectors.EVENT_READ, lambda mask: self._calls.append(call))

    def unwatch(self, file: Selectable) -> None:
        self._selector.unregister(file.fileno())

    def add(self, connected: socket.socket) -> StreamPeer | None:
        """Take ownership of a connected socket. Return its peer, or None if it has already disconnected."""
        try:
            connection = TcpConnection(connected, self._options, self._wire_log)
        except OSError:
            return None
        self._by_peer[connection.peer] = connection
        self._selector.register(connection.fileno(), selectors.EVENT_READ, partial(self._serve, connection))
        self._events.append(Connected(connection.peer))
        return connection.peer

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        """See Link."""
        if not self._events and not self._ready and not self._calls:
            if self._has_looked:  # later data wake the loop again, and a second select would cost as much as a read
                self._has_looked = False
                return None
            self._has_looked = True
            for key, mask in self._selector.select(0):
                key.data(mask)
        while not self._events and self._ready:
            self._read(self._ready.popleft())
        if not self._events and self._calls:  # last, so that a disconnect frees its place first
            self._read_before = 0
            self._calls.pop()()
        if self._events:
            return self._events.popleft()
        self._has_looked = False
        return None

    def send(
        self,
        data: bytes | memoryview,
        to: StreamPeer,
        rest: bytes = b"",
        until_s: float | None = None,
        decided: Callable[[bool], None] | None = None,
    ) -> None:
        """Send to a peer, or queue the rest. Disconnects a peer whose send queue exceeds `max_unread_bytes`.

        Ignored if the peer has disconnected: the session receives that event next. Raises LinkError to report stale
        messages that were dropped before this one.
        """
        decided = decided or (lambda is_sent: None)
        if not (connection := self._by_peer.get(to)):
            decided(False)
            return
        if connection.unsent.size_bytes > self._options.max_unread_bytes:
            self._forget(connection)
            connection.close()
            decided(False)
            sentence = f"{to} has left {self._options.max_unread_bytes // 1024} KiB unread."
            self._events.append(Disconnected(to, sentence))
            return
        had_unsent = bool(connection.unsent.pieces)
        connection.flush(data, rest, until_s, decided)
        if bool(connection.unsent.pieces) is not had_unsent:
            self._select(connection)
        if dropped := connection.take_dropped():
            raise LinkError(f"{to} reads too slowly or has stalled: {dropped} stale messages were dropped.")

    def outlet_to(self, to: StreamPeer) -> Outlet | None:
        """See OutletLink."""
        connection = self._by_peer.get(to)
        return connection.outlet if connection else None

    def has_unsent(self, peer: StreamPeer) -> bool:
        """Return whether data are queued for a peer. Always False for a disconnected one."""
        connection = self._by_peer.get(peer)
        return connection is not None and connection.has_unsent

    def disconnect(self, peer: StreamPeer) -> None:
        """See StreamLink."""
        if connection := self._by_peer.get(peer):
            self._forget(connection)
            self._leaving.add(connection)
        self._events = deque(event for event in self._events if event.source is not peer)

    def disconnect_all(self) -> None:
        """See StreamLink. Also drops received events."""
        for peer in tuple(self._by_peer):
            self.disconnect(peer)
        self._events.clear()
        self._ready.clear()
        self._leaving.wait(LEAVE_S)

    def close(self) -> None:
        """Disconnect all peers, wait for them to close for LEAVE_S at most, and close."""
        self.disconnect_all()
        self._leaving.close()
        self._selector.close()

    def _serve(self, connection: TcpConnection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            connection.flush()
            if not connection.has_unsent:
                self._select(connection)
        if mask & selectors.EVENT_READ:
            self._ready.append(connection)

    def _read(self, connection: TcpConnection) -> None:
        if connection.peer not in self._by_peer:
            return
        try:
            event = connection.read()
        except LinkError as error:
            self._forget(connection)
            self._leaving.add(connection)
            is_regular = isinstance(error, StreamEndedError)
            self._events.append(Disconnected(connection.peer, str(error), is_regular))
            return
        if event is None:
            return
        self._events.append(event)
        if self._calls and self._read_before < MAX_READ_BEFORE:  # the end of the stream may follow
            self._read_before += 1
            self._ready.append(connection)

    def _select(self, connection: TcpConnection) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.has_unsent else 0)
        self._selector.modify(connection.fileno(), events, partial(self._serve, connection))

    def _forget(self, connection: TcpConnection) -> None:
        del self._by_peer[connection.peer]
        self._selector.unregister(connection.fileno())
