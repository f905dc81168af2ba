# SPDX-License-Identifier: Apache-2.0
"""DatagramPort, DatagramPeer, DatagramCaller: UDP as a link for a LinkLoop.

From anybody to a port, with one peer, and to one port of a host that may answer from another port.
"""

import contextlib
import errno
import math
import socket
import sys
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
    LinkRefusedError,
    MakeTap,
    Selectable,
    Tap,
)
from drone_bridge.net.datagram_sockets import LONGEST_DELAY_S, MAX_DATAGRAM_BYTES, bound_socket, ipv4_first
from drone_bridge.net.link_loop import Received
from drone_bridge.wire.addresses import address_name, peer_name


class _Reader:
    """Reads a socket that does not block."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(MAX_DATAGRAM_BYTES))

    def read(self, opened: socket.socket, who: str, tap: Tap | None) -> Received | None:
        """Return the next datagram, None if there is none. Raises LinkRefusedError and LinkError."""
        try:
            size, source = opened.recvfrom_into(self._buffer)
        except BlockingIOError:
            return None
        except ConnectionRefusedError as error:
            raise LinkRefusedError(f"Nobody listens at {who}.") from error
        except OSError as error:
            raise LinkError(f"Nothing can be received from {who}: {error.strerror}.") from error
        if tap:
            tap(RECEIVED, self._buffer[:size], peer_name(source))
        return Received(bytes(self._buffer[:size]), source)


class DatagramPort:
    """One port of this machine, for datagrams from and to anybody; peers are addresses as sockets have them."""

    def __init__(self, host: str, port: int, wire_log: MakeTap | None = None) -> None:
        """Bind; port 0 takes a free one. Raises LinkError when the address is not available."""
        self._socket = bound_socket(host, port)
        self._socket.setblocking(False)
        self._reader = _Reader()
        self._tap = wire_log("udp", peer_name(self._socket.getsockname()), "") if wire_log else None

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def loopback_host(self) -> str:
        """This machine's own address as the socket sends to it: IPv4, as legacy programs have it, where it can."""
        if self._socket.family != socket.AF_INET6:
            return "127.0.0.1"
        return "::ffff:127.0.0.1" if self._socket.getsockname()[0] == "::" else "::1"

    def open(self) -> None:
        """Do nothing: it is open from the beginning."""

    def cancel(self) -> None:
        """Do nothing: nothing waits."""

    def files(self) -> Sequence[Selectable]:
        return (self._socket,)

    def receive(self) -> Received | None:
        return self._reader.read(self._socket, "anybody", self._tap)

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send to an address. Whether anybody listens there is not known."""
        try:
            self._socket.sendto(data, to)
        except OSError as error:
            raise LinkError(f"Nothing can be sent to {peer_name(to)}: {error.strerror}.") from error
        if self._tap:
            self._tap(SENT, data, peer_name(to))

    def close(self) -> None:
        self._socket.close()


#: For how long sending may fail before the link is opened again.
FAILING_S = 1.0


class DatagramPeer(Connector):
    """Datagrams to and from one host and port. Whether anybody is there is known only after sending.

    When the address of this machine changes, sending fails until the link is opened again: that is what `receive` asks
    for once it has failed for FAILING_S.
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
        """`on_failure` gets the error of each attempt to open that failed, and the seconds until the next one."""
        super().__init__(host, port, on_failure, Backoff(longest_s=LONGEST_DELAY_S), cancellation)
        self._wire_log = wire_log
        self._name = address_name(host, port)
        self._socket: socket.socket | None = None
        #: The peer's address, as sockets have it, once it is known.
        self.address: Any = None
        self._reader = _Reader()
        self._tap: Tap | None = None
        self._failing_since_s = math.inf  # since when nothing could be sent

    def open(self) -> None:
        """Look the host up, and connect; retry until that works. Raises LinkCancelledError."""
        opened = self._retried(self._connect_once)
        self.backoff.reset()
        if self._socket:
            self._socket.close()  # until now there was something to send the last command by
        self._socket = opened
        self._failing_since_s = math.inf
        self._socket.setblocking(False)
        self._name = peer_name(self.address)
        if self._wire_log:
            self._tap = self._wire_log("udp", peer_name(self._socket.getsockname()), self._name)

    @property
    def peer(self) -> str:
        """The peer's address and port; before it is known, what the host is called."""
        return self._name

    @property
    def peer_host(self) -> str:
        """The peer's address, without its port; empty before it is known."""
        return str(self.address[0]) if self.address else ""

    @property
    def own_host(self) -> str:
        """The address of our side, once it is open."""
        assert self._socket
        return str(self._socket.getsockname()[0])

    def files(self) -> Sequence[Selectable]:
        return (self._socket,) if self._socket else ()

    def receive(self) -> Received | None:
        """See Link."""
        if elapsed_s() - self._failing_since_s > FAILING_S:
            raise LinkError(f"Nothing could be sent to {self._name} for {FAILING_S:g} s: looking for it again.")
        return self._reader.read(self._socket, self._name, self._tap) if self._socket else None

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send to the peer. Raises LinkRefusedError about an earlier one: this one is sent all the same."""
        if not self._socket:
            raise LinkError(f"Nothing can be sent to {self._name}: there is no link.")
        try:
            self._send(self._socket, data)
        except ConnectionRefusedError as error:
            self._forget_refusals(self._socket)
            with contextlib.suppress(OSError):  # once more, as this was the earlier one's failure
                self._send(self._socket, data)
            raise LinkRefusedError(f"Nobody listens at {self._name}.") from error
        except OSError as error:
            self._failing_since_s = min(self._failing_since_s, elapsed_s())
            raise LinkError(f"Nothing can be sent to {self._name}: {error.strerror}.") from error

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        super().close()

    def _send(self, opened: socket.socket, data: bytes | memoryview) -> None:
        self._put(opened, data)
        self._failing_since_s = math.inf
        if self._tap:
            self._tap(SENT, data, self._name)

    def _put(self, opened: socket.socket, data: bytes | memoryview) -> None:
        opened.send(data)

    def _forget_refusals(self, opened: socket.socket) -> None:
        """Drop what the system keeps of refusals beside the error that was raised."""

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        connecting.connect(address)
        self.address = address

    def _resolve(self) -> list[Any]:
        """See Connector."""
        return ipv4_first(super()._resolve())


# Of Linux, as Python has no names for them: report refusals on a socket that is not connected.
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


class DatagramCaller(DatagramPeer):
    """Datagrams to one host and port, which may be answered from any port, for peers that wait to be called.

    The socket is not connected, as a connected one receives nothing from other ports. Whose datagrams are taken is for
    the session to decide, which has their source. Refused ports are reported on Linux only.
    """

    def receive(self) -> Received | None:
        """See Link."""
        try:
            return super().receive()
        except LinkError as error:
            if self._socket:
                self._forget_refusals(self._socket)
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _UNREACHABLE:  # which routers report of single datagrams
                raise LinkRefusedError(str(error)) from error
            raise

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        """Bind to our own address on the way to the peer, so that what stays on this machine is reached from it only.

        Raises OSError where there is no way.
        """
        with socket.socket(connecting.family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            own, *rest = probe.getsockname()
            self.address = probe.getpeername()  # that of this machine for 0.0.0.0
        connecting.bind((own, 0, *rest[1:]))
        if sys.platform == "linux":
            is_ipv4 = connecting.family == socket.AF_INET
            level, option = (socket.IPPROTO_IP, _IP_RECVERR) if is_ipv4 else (socket.IPPROTO_IPV6, _IPV6_RECVERR)
            connecting.setsockopt(level, option, 1)

    def _put(self, opened: socket.socket, data: bytes | memoryview) -> None:
        opened.sendto(data, self.address)

    def _forget_refusals(self, opened: socket.socket) -> None:
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # none is left
                while True:
                    opened.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
