# SPDX-License-Identifier: Apache-2.0
"""TCP socket options: small messages are sent at once, and a vanished peer is noticed."""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from drone_bridge.net.connector import (
    RECEIVED,
    SENT,
    Cancellation,
    Connector,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
    MakeTap,
    reason,
    wait_readable,
)
from drone_bridge.wire.addresses import address_name

KEEPALIVE_IDLE_S = 5
KEEPALIVE_INTERVAL_S = 2
KEEPALIVE_PROBES = 3


def vanished_after_s() -> int:
    """Return how long after its last sign of life a peer that lost power or its cable is given up."""
    return KEEPALIVE_IDLE_S + KEEPALIVE_PROBES * KEEPALIVE_INTERVAL_S


def set_options(connected: socket.socket) -> None:
    """Send small messages at once, and probe a peer that is silent."""
    # The protocols are made of small requests and answers, which must not wait for each other.
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def expect_acknowledgements(connected: socket.socket) -> None:
    """Also give up a peer that acknowledges nothing, which is otherwise not probed for 15 minutes.

    To Linux a peer that reads nothing looks the same, so this is not for peers that may be stopped inside a message.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, vanished_after_s() * 1000)


# A TCP connection and how to make one, for a thread that can be cancelled. tcp_listener.py waits for peers.


CONNECT_TIMEOUT_S = 5.0
_DRAIN_BYTES = 65536
_PEER_END = getattr(select, "POLLRDHUP", 0)  # only Linux reports an end of stream behind unread bytes


class TcpStream:
    """One connection, for one thread. Another thread interrupts it through the cancellation, never through `close`."""

    def __init__(
        self,
        connected: socket.socket,
        cancellation: Cancellation,
        on_close: Callable[[], None] = lambda: None,
        wire_log: MakeTap | None = None,
    ) -> None:
        """Take over a connected socket. Raises OSError and closes it if the peer is gone already."""
        try:
            connected.setblocking(False)
            set_options(connected)
            self.peer = peer_name(connected)
            own_host, own_port = connected.getsockname()[:2]
        except OSError:
            connected.close()
            raise
        self._tap = wire_log("tcp", address_name(own_host, own_port), self.peer) if wire_log else None
        self._socket = connected
        self._polls: dict[int, select.poll] = {}  # by event
        self._cancellation = cancellation
        self._on_close = on_close
        self._closing = threading.Lock()
        self._unsent = memoryview(b"")  # the rest of what was being sent when cancelled
        self._acknowledges_at_once = False
        self._heard_s = time.monotonic()
        #: Whether anything has been received.
        self.has_heard = False
        self._removal = ""  # why the peer has lost its place

    @property
    def silence_s(self) -> float:
        """How long ago the last bytes were received, or the connection was opened. Thread-safe."""
        return time.monotonic() - self._heard_s

    def remove(self, reason: str) -> None:
        """Make receiving raise LinkError with the reason, a sentence; sending still works. Thread-safe."""
        self._removal = reason
        with self._closing, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def acknowledge_at_once(self) -> None:
        """Send acknowledgements without delay from now on, where the system can.

        For peers that send a message in pieces with Nagle's algorithm on: each piece waits for the acknowledgement of
        the previous one, which is otherwise delayed by 40 ms. Not when all buffers are full: then the message is whole,
        and its answer acknowledges it.
        """
        self._acknowledges_at_once = hasattr(socket, "TCP_QUICKACK")

    def wait_for_acknowledgements(self) -> None:
        """Delay small pieces until what was sent is acknowledged, as sockets do by default (Nagle's algorithm).

        For emulators of peers that never change this.
        """
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with bytes, and at the peer's end."""
        return self._socket.fileno()

    def receive_into(self, *buffers: memoryview, timeout_s: float | None = None) -> int:
        """Wait for bytes, fill the buffers in turn and return their number, 0 if the peer has closed.

        Raises LinkCancelledError, LinkTimeoutError, and LinkError when the connection is lost.
        """
        if timeout_s is None:  # between messages, that is: the socket would say in vain that there is nothing yet
            self._wait(select.POLLIN, None, "sent nothing")
        while not self._cancellation.is_set:
            if self._removal:
                raise LinkError(self._removal)
            try:
                count = self._socket.recvmsg_into(buffers)[0]
                if self._removal:
                    raise LinkError(self._removal)
                self._heard_s, self.has_heard = time.monotonic(), True
                if self._tap:
                    self._tap(RECEIVED, _head(buffers, count))
                if self._acknowledges_at_once and count < sum(map(len, buffers)):  # Linux goes back to delays by itself
                    self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                return count
            except BlockingIOError:
                self._wait(select.POLLIN, timeout_s, "sent nothing")
            except OSError as error:
                raise LinkError(f"The connection to {self.peer} was lost: {reason(error)}.") from error
        raise LinkCancelledError("Receiving was cancelled.")

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for bytes or the timeout; return whether `receive_into` would not block. Raises LinkCancelledError."""
        is_readable, is_cancelled = wait_readable([self._socket, self._cancellation], timeout_s)
        if is_cancelled:
            raise LinkCancelledError("Waiting was cancelled.")
        return is_readable

    def send_all(self, data: bytes | memoryview, timeout_s: float | None = None, *, head_bytes: int = 0) -> None:
        """Send all the data. Raises as `receive_into` does; the amount sent is then unknown.

        The first `head_bytes` are sent in a piece of their own.
        After LinkCancelledError the data has to stay as it is until `leave` has returned.
        """
        rest = memoryview(data)
        size = len(rest)
        while rest:
            if self._cancellation.is_set:
                if len(rest) < size:
                    self._unsent = rest
                raise LinkCancelledError("Sending was cancelled.")
            sent = size - len(rest)
            piece = rest[: head_bytes - sent] if sent < head_bytes else rest
            count = self._send_some(piece)
            rest = rest[count:]
            if count < len(piece):
                self._wait(select.POLLOUT, timeout_s, "took no data")

    def leave(self, last_pieces: bytes | Sequence[bytes], timeout_s: float) -> None:
        """Send the last messages, even if cancelled, and close without discarding them.

        Several messages are sent one by one, for peers that expect each message in a piece of its own. A message that
        the cancellation cut short is completed first: the receiver would take the last messages for the rest of it.
        Closing while received bytes are unread resets a connection, and a reset can overtake data. So the peer gets
        `timeout_s` to read to the end and close as well, while what it still sends is thrown away.
        """
        deadline = time.monotonic() + timeout_s
        words = [last_pieces] if isinstance(last_pieces, bytes) else last_pieces
        unsent = [part for part in (self._unsent, *(memoryview(word) for word in words)) if part]
        is_said = False
        scratch = bytearray(_DRAIN_BYTES)
        with contextlib.suppress(OSError, LinkError):
            while True:
                while unsent:
                    count = self._send_some(unsent[0])
                    unsent[0] = unsent[0][count:]
                    if unsent[0]:
                        break
                    del unsent[0]
                if not unsent and not is_said:
                    self._socket.shutdown(socket.SHUT_WR)
                    is_said = True
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                poll = select.poll()
                poll.register(self._socket, select.POLLIN if is_said else select.POLLIN | select.POLLOUT)
                poll.poll(left_s * 1000)
                with contextlib.suppress(BlockingIOError):
                    count = self._socket.recv_into(scratch)
                    if self._tap:
                        self._tap(RECEIVED, memoryview(scratch)[:count])
                    if not count:
                        break
        self.close()

    def close(self) -> None:
        """Close at once. Calling it again does nothing."""
        self._on_close()  # before the peer can know: it may come back as soon as it does
        with self._closing:
            self._socket.close()

    def has_ended(self) -> bool:
        """Return whether either side has closed the connection, even with unread data. Thread-safe."""
        with self._closing:
            if self._socket.fileno() < 0:
                return True
            poll = select.poll()
            poll.register(self._socket, _PEER_END)  # a lost connection is reported in any case
            return bool(poll.poll(0))

    def _send_some(self, data: memoryview) -> int:
        try:
            count = self._socket.send(data)
            if self._tap:
                self._tap(SENT, data[:count])
            return count
        except BlockingIOError:
            return 0
        except OSError as error:
            raise LinkError(f"The connection to {self.peer} was lost: {reason(error)}.") from error

    def _wait(self, event: int, timeout_s: float | None, failing: str) -> None:
        poll = self._polls.get(event)
        if poll is None:  # made once: this is done for every frame
            poll = self._polls[event] = select.poll()
            poll.register(self._socket, event)
            poll.register(self._cancellation, select.POLLIN)
        if not poll.poll(None if timeout_s is None else timeout_s * 1000):
            raise LinkTimeoutError(f"{self.peer} {failing} for {timeout_s:g} s.")


def _head(buffers: Sequence[memoryview], count: int) -> bytes:
    """Return the first bytes of several buffers."""
    parts = []
    for buffer in buffers:
        parts.append(buffer[:count])
        count -= len(parts[-1])
    return b"".join(parts)


class TcpConnector(Connector[TcpStream]):
    """Connects to a peer, retrying forever."""

    kind = socket.SOCK_STREAM

    def _stream(self, connected: socket.socket) -> TcpStream:
        return TcpStream(connected, self._cancellation, wire_log=self._wire_log)

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        connect(connecting, address, self._cancellation)


def connect(connecting: socket.socket, address: Any, cancellation: Cancellation) -> None:
    """Connect a new socket, which does not block from then on. Raises OSError and LinkCancelledError."""
    connecting.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        connecting.connect(address)
    poll = select.poll()
    poll.register(connecting, select.POLLOUT)
    poll.register(cancellation, select.POLLIN)
    ready = poll.poll(CONNECT_TIMEOUT_S * 1000)
    if cancellation.is_set:
        raise LinkCancelledError("Connecting was cancelled.")
    if not ready:
        raise TimeoutError(f"no answer for {CONNECT_TIMEOUT_S:g} s")
    if code := connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(code, os.strerror(code))
    if connecting.getsockname() == connecting.getpeername():
        # A port from the range for clients, on this machine, with nobody listening, can meet itself.
        raise ConnectionRefusedError("nobody listens there")


def peer_name(connected: socket.socket) -> str:
    """Return the address and port of the peer. Raises OSError if it has gone."""
    host, port = connected.getpeername()[:2]
    return address_name(host, port)
