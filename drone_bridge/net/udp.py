# SPDX-License-Identifier: Apache-2.0
"""UdpStream and UdpListener: UDP links to one peer, and ports for any sender, for a thread that can be cancelled."""

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import (
    RECEIVED,
    SENT,
    Backoff,
    Cancellation,
    Connector,
    LinkCancelledError,
    LinkError,
    LinkRefusedError,
    LinkTimeoutError,
    MakeTap,
)
from drone_bridge.net.datagram_sockets import LONGEST_DELAY_S, MAX_DATAGRAM_BYTES, bound_socket, ipv4_first
from drone_bridge.wire.addresses import peer_name

#: SO_TIMESTAMPNS, which has no name in Python: the kernel of Linux stamps each datagram by the wall clock.
_STAMP_OPTION = 35
_STAMP = struct.Struct("@ll")  # s and ns


class Datagram(NamedTuple):
    """A datagram and its sender."""

    data: bytes
    source: Any  # an address, as sockets have it


def stamp_datagrams(opened: socket.socket) -> None:
    """Have the ages of datagrams measured. To be called before binding: what is queued by then gets no stamp."""
    with contextlib.suppress(OSError):  # of a system without stamps
        opened.setsockopt(socket.SOL_SOCKET, _STAMP_OPTION, 1)


class DatagramReader:
    """Reads datagrams from a socket that does not block, with their ages."""

    def __init__(self, opened: socket.socket, longest_bytes: int = MAX_DATAGRAM_BYTES) -> None:
        """The rest of a datagram that is longer is cut off."""
        self.buffer = memoryview(bytearray(longest_bytes))
        self._socket = opened
        self._stamp_bytes = socket.CMSG_SPACE(_STAMP.size)
        self._emptied_s = elapsed_s()  # when there was nothing to read

    def read(self) -> tuple[int, Any, float]:
        """Read a datagram into the buffer; return its length, its sender, and its age in s.

        Raises OSError, of which BlockingIOError says that there is none.
        """
        try:
            size, ancillary, _, source = self._socket.recvmsg_into([self.buffer], self._stamp_bytes)
        except BlockingIOError:
            self._emptied_s = elapsed_s()
            raise
        # No datagram is older than that, even if the wall clock was set forward meanwhile. It is all that is known on
        # systems without stamps, and after the clock was set back.
        age_s = elapsed_s() - self._emptied_s
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == _STAMP_OPTION and len(data) == _STAMP.size:
                seconds, nanoseconds = _STAMP.unpack(data)
                stamped_age_s = time.time() - seconds - nanoseconds / 1e9
                age_s = min(age_s, stamped_age_s) if stamped_age_s >= 0.0 else age_s
        return size, source, age_s


class _UdpSocket:
    """A socket whose operations never block beyond their timeout or the cancellation."""

    def __init__(
        self,
        opened: socket.socket,
        cancellation: Cancellation,
        peer: str = "",
        wire_log: MakeTap | None = None,
    ) -> None:
        opened.setblocking(False)
        self.socket = opened
        self._buffer = memoryview(bytearray(MAX_DATAGRAM_BYTES))
        self.tap = wire_log("udp", peer_name(opened.getsockname()), peer) if wire_log else None
        self._cancellation = cancellation
        self._poll = select.poll()
        self._poll.register(opened, select.POLLIN)
        self._poll.register(cancellation, select.POLLIN)

    def receive(self, timeout_s: float | None, who: str) -> Datagram:
        """Wait for a datagram. Raises LinkError and its subclasses."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        has_any = True  # perhaps
        while has_any or self._wait(None if deadline_s is None else max(0.0, deadline_s - time.monotonic())):
            if self._cancellation.is_set:
                raise LinkCancelledError("Receiving was cancelled.")
            try:
                size, source = self.socket.recvfrom_into(self._buffer)
            except BlockingIOError:  # also after poll: a datagram with a wrong checksum wakes it, then is dropped
                has_any = False
                continue
            except ConnectionRefusedError as error:
                raise LinkRefusedError(f"Nobody listens at {who}.") from error
            except OSError as error:
                raise LinkError(f"Nothing can be received from {who}: {error.strerror}.") from error
            if self.tap:
                self.tap(RECEIVED, self._buffer[:size], peer_name(source))
            return Datagram(bytes(self._buffer[:size]), source)
        raise LinkTimeoutError(f"{who} sent nothing for {timeout_s:g} s.")

    def close(self) -> None:
        """Close at once. May be called twice."""
        self.socket.close()

    def check_sending(self, error: OSError, peer: str) -> None:
        """Raise LinkError for a datagram that could not be sent, unless another thread has closed the socket."""
        if self.socket.fileno() >= 0:
            raise LinkError(f"Nothing can be sent to {peer}: {error.strerror}.") from error

    def pause(self, seconds: float) -> None:
        """Wait for the cancellation only."""
        if self._cancellation.wait(seconds):
            raise LinkCancelledError("Waiting was cancelled.")

    def _wait(self, timeout_s: float | None) -> bool:
        """Wait for a datagram; return whether there is one. Raises LinkCancelledError."""
        if not self._cancellation.is_set:
            ready = self._poll.poll(None if timeout_s is None else timeout_s * 1000)
            if not self._cancellation.is_set:
                return bool(ready)
        raise LinkCancelledError("Receiving was cancelled.")


class UdpStream:
    """Datagrams to and from one peer. Its methods are for one thread, except for `close`."""

    def __init__(
        self,
        connected: socket.socket,
        cancellation: Cancellation,
        wire_log: MakeTap | None = None,
    ) -> None:
        """Take over a connected socket. Raises OSError when it is not connected."""
        self.peer = peer_name(connected.getpeername())
        self._socket = _UdpSocket(connected, cancellation, self.peer, wire_log)
        #: The address of this side, as sockets have it.
        self.own_host: str = connected.getsockname()[0]

    def send(self, datagram: bytes) -> None:
        """Send without blocking, even if cancelled; nothing once it is closed.

        Raises:
            LinkRefusedError: nobody listened to an earlier datagram. This one has been sent all the same.
            LinkError: it could not be sent.
        """
        try:
            self._send(datagram)
        except ConnectionRefusedError as error:
            with contextlib.suppress(ConnectionRefusedError):  # once more, as this was the earlier one's failure
                self._send(datagram)
            raise LinkRefusedError(f"Nobody listens at {self.peer}.") from error

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Wait for the peer's next datagram, of at most MAX_DATAGRAM_BYTES.

        Raises LinkCancelledError, LinkTimeoutError, LinkRefusedError when nobody listened to what was sent, and
        LinkError when the socket can't be used any more.
        """
        return self._socket.receive(timeout_s, self.peer).data

    def pause(self, seconds: float) -> None:
        """Wait. Raises LinkCancelledError."""
        self._socket.pause(seconds)

    def close(self) -> None:
        """Close at once. May be called twice."""
        self._socket.close()

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.socket.send(datagram)
            if self._socket.tap:
                self._socket.tap(SENT, datagram, self.peer)
        except ConnectionRefusedError:
            raise
        except OSError as error:
            self._socket.check_sending(error, self.peer)


class UdpConnector(Connector[UdpStream]):
    """Opens links to one peer. Whether the peer exists is known only after sending."""

    kind = socket.SOCK_DGRAM

    def __init__(
        self,
        host: str,
        port: int,
        cancellation: Cancellation,
        on_failure: Callable[[str, float], None],
        wire_log: MakeTap | None = None,
    ) -> None:
        """`on_failure` gets a sentence about each attempt that failed and the seconds until the next one."""
        super().__init__(host, port, cancellation, on_failure, Backoff(longest_s=LONGEST_DELAY_S), wire_log=wire_log)

    def _resolve(self) -> list[Any]:
        """See Connector."""
        return ipv4_first(super()._resolve())

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        connecting.connect(address)

    def _stream(self, connected: socket.socket) -> UdpStream:
        return UdpStream(connected, self._cancellation, self._wire_log)


class UdpListener:
    """Receives datagrams on one port from any sender."""

    def __init__(self, host: str, port: int, cancellation: Cancellation, wire_log: MakeTap | None = None) -> None:
        """Bind; port 0 takes a free one. Raises LinkError when the address is not available."""
        self.backoff = Backoff(longest_s=LONGEST_DELAY_S)
        self._socket = _UdpSocket(bound_socket(host, port), cancellation, wire_log=wire_log)

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._socket.socket.getsockname()[1])

    @property
    def loopback_host(self) -> str:
        """This machine's own address, in the address family of the socket."""
        return "::1" if self._socket.socket.family == socket.AF_INET6 else "127.0.0.1"

    def receive(self, timeout_s: float | None = None) -> Datagram:
        """Wait for the next datagram, of at most MAX_DATAGRAM_BYTES, from any sender.

        Raises LinkCancelledError, LinkTimeoutError, and LinkError when the socket can't be used any more.
        """
        return self._socket.receive(timeout_s, "anybody")

    def send(self, datagram: bytes, address: Any) -> None:
        """Send to a socket address without blocking, even if cancelled; nothing once it is closed. Thread-safe.

        Raises LinkError when it could not be sent. Whether anybody listens there is not known.
        """
        try:
            self._socket.socket.sendto(datagram, address)
            if self._socket.tap:
                self._socket.tap(SENT, datagram, peer_name(address))
        except OSError as error:
            self._socket.check_sending(error, peer_name(address))

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


def wait_for_any(
    sources: "Sequence[UdpStream | UdpListener]", cancellation: Cancellation, timeout_s: float
) -> "list[UdpStream | UdpListener]":
    """Wait until one of several sources has a datagram; return those that have. Raises LinkCancelledError."""
    by_number = {source._socket.socket.fileno(): source for source in sources}
    poll = select.poll()
    for number in (*by_number, cancellation.fileno()):
        poll.register(number, select.POLLIN)
    ready = [] if cancellation.is_set else poll.poll(timeout_s * 1000)
    if cancellation.is_set:
        raise LinkCancelledError("Receiving was cancelled.")
    return [by_number[number] for number, _ in ready if number in by_number]


def open_preferred(host: str, port: int, cancellation: Cancellation) -> tuple[UdpListener, str | None]:
    """Listen on a port or, if it is not available, on any other one; return also a sentence on why.

    Raises LinkError.
    """
    try:
        return UdpListener(host, port, cancellation), None
    except LinkError as error:
        return UdpListener(host, 0, cancellation), str(error)
