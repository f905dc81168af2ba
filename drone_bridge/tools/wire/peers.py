# SPDX-License-Identifier: Apache-2.0
"""The live peer of a replayed conversation, whichever side connects."""

import contextlib
import time
from collections.abc import Callable
from typing import Protocol

from drone_bridge.net.connector import Cancellation, LinkRefusedError, LinkTimeoutError, address_name
from drone_bridge.net.tcp import TcpConnector, TcpStream
from drone_bridge.net.tcp_listener import TcpListener
from drone_bridge.net.udp import Datagram, UdpConnector, UdpListener, UdpStream

SEND_TIMEOUT_S = 10.0
_RECEIVE_BYTES = 1 << 16


class Peer(Protocol):
    """The other end of a connection."""

    def send(self, data: bytes | memoryview) -> None:
        """Send a piece or a datagram. Raises LinkError."""

    def receive(self, timeout_s: float) -> bytes:
        """Return what comes next; nothing at all is the end of a stream. Raises LinkError."""

    def close(self) -> None:
        """Close at once."""


class _TcpPeer:
    def __init__(self, stream: TcpStream, listener: TcpListener | None = None) -> None:
        self._stream = stream
        self._listener = listener
        self._buffer = memoryview(bytearray(_RECEIVE_BYTES))

    def send(self, data: bytes | memoryview) -> None:
        self._stream.send_all(data, SEND_TIMEOUT_S)

    def receive(self, timeout_s: float) -> bytes:
        return bytes(self._buffer[: self._stream.receive_into(self._buffer, timeout_s=timeout_s)])

    def close(self) -> None:
        self._stream.leave(b"", 0.3)
        if self._listener:
            self._listener.close()


class _UdpPeer:
    def __init__(self, stream: UdpStream) -> None:
        self._stream = stream

    def send(self, data: bytes | memoryview) -> None:
        with contextlib.suppress(LinkRefusedError):  # reported for an earlier datagram
            self._stream.send(bytes(data))

    def receive(self, timeout_s: float) -> bytes:
        until_s = time.monotonic() + timeout_s
        while True:
            try:
                return self._stream.receive(max(0.0, until_s - time.monotonic()))
            except LinkRefusedError:  # it may start yet
                if time.monotonic() >= until_s:
                    raise LinkTimeoutError("Nobody listens.") from None

    def close(self) -> None:
        self._stream.close()


class _UdpCaller:
    """The first peer that sends to our port."""

    def __init__(self, listener: UdpListener) -> None:
        self._listener = listener
        self._first: Datagram | None = listener.receive()
        self._address = self._first.source

    def send(self, data: bytes | memoryview) -> None:
        self._listener.send(bytes(data), self._address)

    def receive(self, timeout_s: float) -> bytes:
        first, self._first = self._first, None
        return (first or self._listener.receive(timeout_s)).data

    def close(self) -> None:
        self._listener.close()


def open_peer(
    transport: str,
    host: str,
    port: int,
    cancellation: Cancellation,
    *,
    is_listening: bool,
    say: Callable[[str], object],
) -> Peer:
    """Connect, or wait for a connection. Raises LinkError."""

    def failed(sentence: str, _: float) -> None:
        say(sentence)

    if transport == "tcp" and is_listening:
        listener = TcpListener(host, port, cancellation, lambda who: None)
        say(f"Waiting on {address_name(host, listener.port)}.")
        try:
            return _TcpPeer(listener.open(), listener)
        except BaseException:
            listener.close()
            raise
    if transport == "tcp":
        return _TcpPeer(TcpConnector(host, port, cancellation, failed).open_once())
    if is_listening:
        udp = UdpListener(host, port, cancellation)
        say(f"Waiting on {address_name(host, udp.port)}.")
        return _UdpCaller(udp)
    return _UdpPeer(UdpConnector(host, port, cancellation, failed).open_once())
