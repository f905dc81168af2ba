# SPDX-License-Identifier: Apache-2.0
"""LeavingConnections: lingering TCP connections, closed for writing and drained until their peers close too.

Closing a connection with unread bytes resets it. The reset can overtake sent data, and can terminate a peer that still
writes. A separate thread drains the connections, since a peer may keep streaming while the link's thread opens the next
connection or waits before it does.
"""

import contextlib
import os
import select
import threading
from collections import deque

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.tcp_connection import TcpConnection


class LeavingConnections:
    """Set of lingering connections, bounded in number and time. `add`, `wait` and `close` are for one thread."""

    def __init__(self, linger_s: float, most: int) -> None:
        """Start empty.

        Args:
            linger_s: how long a peer has to read to the end and close.
            most: limit of lingering connections; beyond it the oldest is closed.
        """
        self._linger_s, self._most = linger_s, most
        self._added: deque[TcpConnection] = deque()
        self._count = 0  # connections added and not closed yet
        self._changed = threading.Condition()  # guards the count
        self._is_closing = False
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        self._thread: threading.Thread | None = None  # started with the first peer that does not close at once

    def add(self, connection: TcpConnection) -> None:
        """Send the rest, close for writing, and close once the peer does."""
        if connection.has_left():
            connection.close()
            return
        with self._changed:
            self._count += 1
        self._added.append(connection)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="leaving", daemon=True)
            self._thread.start()
        self._wake()

    def wait(self, timeout_s: float) -> None:
        """Wait until all connections are closed, or for the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count, timeout_s)

    def close(self) -> None:
        """Close all connections at once. Idempotent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._wake()
        if self._thread:
            self._thread.join()
        os.close(self._woken)
        os.close(self._waking)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._waking, b"w")

    def _run(self) -> None:
        leaving: dict[TcpConnection, float] = {}  # to deadlines, the oldest first
        while not self._is_closing:
            self._poll(leaving)
            while self._added:
                leaving[self._added.popleft()] = elapsed_s() + self._linger_s
            excess, now_s = len(leaving) - self._most, elapsed_s()
            for number, (connection, until_s) in enumerate(tuple(leaving.items())):
                if connection.has_left() or number < excess or now_s >= until_s:
                    del leaving[connection]
                    self._end(connection)
        for connection in (*leaving, *self._added):
            self._end(connection)

    def _poll(self, leaving: dict[TcpConnection, float]) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        for connection in leaving:
            events = 0 if connection.has_ended else select.POLLIN  # a stream at its end stays readable
            poll.register(connection, events | (select.POLLOUT if connection.has_unsent else 0))
        wait_s = min(leaving.values()) - elapsed_s() if leaving else None
        poll.poll(None if wait_s is None else max(0.0, wait_s) * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def _end(self, connection: TcpConnection) -> None:
        connection.close()
        with self._changed:
            self._count -= 1
            self._changed.notify_all()
