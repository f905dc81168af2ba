# SPDX-License-Identifier: Apache-2.0
"""DatagramPort, DatagramPeer, DatagramCaller: UDP links for a LinkLoop.

A DatagramPort serves several peers. A DatagramPeer exchanges datagrams with one host and port. A DatagramCaller sends
to one port of a host, which may answer from another port.
"""

import contextlib
import errno
import math
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import (
    RECEIVED,
    SENT,
    Backoff,
    Cancellation,
    Connector,
    LinkError,
    LinkOutdatedError,
    LinkRefusedError,
    MakeTap,
    Selectable,
    Tap,
    no_log,
)
from drone_bridge.net.datagram_sockets import LONGEST_DELAY_S, MAX_DATAGRAM_BYTES, bound_socket, claim, ipv4_first
from drone_bridge.net.last_words import Outlet
from drone_bridge.net.link_loop import ReceivedData
from drone_bridge.wire.addresses import address_name, peer_name


class _SocketReader:
    """Reader of a non-blocking socket."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(MAX_DATAGRAM_BYTES))

    def read(self, opened: socket.socket, peer: str, tap: Tap) -> ReceivedData | None:
        """Return the next datagram, None if there is none. Raises LinkRefusedError and LinkError."""
        try:
            size, source = opened.recvfrom_into(self._buffer)
        except BlockingIOError:
            return None
        except ConnectionRefusedError as error:
            raise LinkRefusedError(f"The port of {peer} is closed.") from error
        except OSError as error:
            raise LinkError(f"Receiving from {peer} failed: {error.strerror}.") from error
        data = bytes(self._buffer[:size])
        tap(RECEIVED, data, peer_name(source))
        return ReceivedData(data, source)


class DatagramPort:
    """UDP port of this machine that serves several peers. A peer is a socket address."""

    def __init__(self, host: str, port: int, wire_log: MakeTap | None = None, *, source: Any = None) -> None:
        """Bind the socket; port 0 picks a free one, `source` see bound_socket. Raises LinkError."""
        self._claim = claim(port, source) if source else None
        try:
            self._socket = bound_socket(host, port, source)
        except LinkError:
            if self._claim:
                self._claim.close()
            raise
        self._socket.setblocking(False)
        self._reader = _SocketReader()
        self._tap = (wire_log or no_log)("udp", peer_name(self._socket.getsockname()), "")

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def loopback_host(self) -> str:
        """Loopback address that the socket can send to: IPv4 if possible, since legacy programs use it."""
        if self._socket.family != socket.AF_INET6:
            return "127.0.0.1"
        return "::ffff:127.0.0.1" if self._socket.getsockname()[0] == "::" else "::1"

    def open(self) -> None:
        """Do nothing: the port is open from the beginning."""

    def cancel(self) -> None:
        """Do nothing: `open` never waits."""

    def files(self) -> Sequence[Selectable]:
        return (self._socket,)

    def receive(self) -> ReceivedData | None:
        return self._reader.read(self._socket, "anybody", self._tap)

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send to an address. A closed port at the destination is not reported."""
        try:
            self._socket.sendto(data, to)
        except OSError as error:
            raise LinkError(f"Sending to {peer_name(to)} failed: {error.strerror}.") from error
        self._tap(SENT, data, peer_name(to))

    def outlet_to(self, to: Any) -> Outlet | None:
        """See OutletLink."""
        return Outlet(self._socket, to)

    def close(self) -> None:
        self._socket.close()
        if self._claim:
            self._claim.close()


def _is_numeric(host: str) -> bool:
    """Return whether a host is an address, and no name."""
    with contextlib.suppress(OSError, ValueError):
        return bool(socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST))
    return False


#: How long sending may fail before the link is reopened.
FAILING_S = 1.0
#: Period in which the name of a silent peer is looked up.
LOOK_UP_S = 3.0


class DatagramPeer(Connector):
    """UDP link to one host and port. A closed port is detected only after sending.

    When the address of this machine changes, sending fails until the link is reopened. `receive` requests that by
    a LinkOutdatedError once sending has failed for FAILING_S, or when a silent peer's name has another address.
    """

    kind = socket.SOCK_DGRAM

    def __init__(
        self,
        host: str,
        port: int,
        on_failure: Callable[[LinkError, float], None],
        wire_log: MakeTap | None = None,
        *,
        cancellation: Cancellation | None = None,
    ) -> None:
        """`on_failure` gets the error of each failed attempt to open, and the delay until the next one, s."""
        super().__init__(host, port, on_failure, Backoff(longest_s=LONGEST_DELAY_S), cancellation)
        self._wire_log = wire_log or no_log
        self._name = address_name(host, port)
        self._socket: socket.socket | None = None
        #: The peer's socket address, once it is known.
        self.address: Any = None
        self._reader = _SocketReader()
        self._tap = no_log("", "", "")
        self._failing_since_s = math.inf  # when sending began to fail
        self._is_numeric = _is_numeric(host)
        self._look_up_at_s = math.inf
        self._looking_up: threading.Thread | None = None
        self._found: list[str] = []  # addresses, by the thread

    def open(self) -> None:
        """Resolve the host and connect, with retries. Raises LinkCancelledError."""
        opened = self._retried(self._connect_once)
        self.backoff.reset()
        if self._socket:
            self._socket.close()  # only now: until then the last command could still be sent
        self._socket = opened
        self._failing_since_s = math.inf
        self._found = []
        self.heard()
        self._socket.setblocking(False)
        self._name = peer_name(self.address)
        self._tap = self._wire_log("udp", peer_name(self._socket.getsockname()), self._name)

    @property
    def peer(self) -> str:
        """The peer's address and port; the configured host and port before the address is known."""
        return self._name

    @property
    def peer_host(self) -> str:
        """The peer's address, without its port; empty before it is known."""
        return str(self.address[0]) if self.address else ""

    @property
    def hosts(self) -> tuple[str, str] | None:
        """Our address towards the peer, and the peer's; None without a link. Thread-safe."""
        with contextlib.suppress(OSError):  # it is being reopened
            if opened := self._socket:
                return str(opened.getsockname()[0]), str(opened.getpeername()[0])
        return None

    @property
    def own_host(self) -> str:
        """Our own address, once the link is open."""
        assert self._socket
        return str(self._socket.getsockname()[0])

    def files(self) -> Sequence[Selectable]:
        return (self._socket,) if self._socket else ()

    def receive(self) -> ReceivedData | None:
        """See Link."""
        if elapsed_s() - self._failing_since_s > FAILING_S:
            raise LinkOutdatedError(f"Sending to {self._name} has failed for {FAILING_S:g} s: reopening the link.")
        if self._has_moved():
            raise LinkOutdatedError(f"{self._host} is silent, and no longer {self._name}: reopening the link.")
        received = self._reader.read(self._socket, self._name, self._tap) if self._socket else None
        if received:
            self.heard()
        return received

    def heard(self) -> None:
        """Note that the peer is not silent."""
        self._look_up_at_s = elapsed_s() + LOOK_UP_S

    def _has_moved(self) -> bool:
        """Look up the name of a silent peer, in a thread. Return True once it has other addresses than ours."""
        if (found := self._found) and self.peer_host not in found:
            return True
        if not self._is_numeric and elapsed_s() >= self._look_up_at_s:
            self.heard()
            if not (self._looking_up and self._looking_up.is_alive()):
                self._looking_up = threading.Thread(target=self._look_up, name="resolve", daemon=True)
                self._looking_up.start()
        return False

    def _look_up(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            found = socket.getaddrinfo(self._host, self._port, type=self.kind)
            self._found = [str(address[0]) for *_, address in found]

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send to the peer. A LinkRefusedError is about an earlier datagram: this one is sent all the same."""
        if not self._socket:
            raise LinkError(f"Can't send to {self._name}: the link is not open.")
        try:
            self._send(self._socket, data)
        except ConnectionRefusedError as error:
            self._forget_refusals(self._socket)
            with contextlib.suppress(OSError):  # resend: the error was of an earlier datagram
                self._send(self._socket, data)
            raise LinkRefusedError(f"The port of {self._name} is closed.") from error
        except OSError as error:
            self._failing_since_s = min(self._failing_since_s, elapsed_s())
            raise LinkError(f"Sending to {self._name} failed: {error.strerror}.") from error

    def outlet_to(self, to: Any) -> Outlet | None:
        """See OutletLink."""
        return Outlet(self._socket) if self._socket else None

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        super().close()

    def _send(self, opened: socket.socket, data: bytes | memoryview) -> None:
        self._put(opened, data)
        self._failing_since_s = math.inf
        self._tap(SENT, data, self._name)

    def _put(self, opened: socket.socket, data: bytes | memoryview) -> None:
        opened.send(data)

    def _forget_refusals(self, opened: socket.socket) -> None:
        """Discard refusals that the system still reports after the one that was raised."""

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        connecting.connect(address)
        self.address = address

    def _resolve(self) -> list[Any]:
        """See Connector."""
        return ipv4_first(super()._resolve())


# Linux socket options that report refusals on an unconnected socket. Python has no names for them.
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


class DatagramCaller(DatagramPeer):
    """UDP link to one host and port that may answer from any port, for peers that wait for a first datagram.

    The socket is not connected, since a connected one receives nothing from other ports. The session gets the source of
    each datagram, and decides which ones to accept. Refused ports are reported on Linux only.
    """

    def receive(self) -> ReceivedData | None:
        """See Link."""
        try:
            return super().receive()
        except LinkError as error:
            if self._socket:
                self._forget_refusals(self._socket)
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _UNREACHABLE:  # reported by routers for single datagrams
                raise LinkRefusedError(str(error)) from error
            raise

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        """Bind to our own address on the route to the peer: a peer on loopback is then reachable from loopback only.

        Raises OSError if there is no route.
        """
        with socket.socket(connecting.family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            own, *rest = probe.getsockname()
            self.address = probe.getpeername()  # for 0.0.0.0 it is an address of this machine
        connecting.bind((own, 0, *rest[1:]))
        if sys.platform == "linux":
            is_ipv4 = connecting.family == socket.AF_INET
            level, option = (socket.IPPROTO_IP, _IP_RECVERR) if is_ipv4 else (socket.IPPROTO_IPV6, _IPV6_RECVERR)
            connecting.setsockopt(level, option, 1)

    def outlet_to(self, to: Any) -> Outlet | None:
        """See OutletLink."""
        return Outlet(self._socket, self.address) if self._socket else None

    def _put(self, opened: socket.socket, data: bytes | memoryview) -> None:
        opened.sendto(data, self.address)

    def _forget_refusals(self, opened: socket.socket) -> None:
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # the queue is empty
                while True:
                    opened.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
