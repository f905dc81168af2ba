# SPDX-License-Identifier: Apache-2.0
"""The live peer of a replayed conversation, whichever side connects."""

import contextlib
import socket
import time
from collections.abc import Callable

from drone_bridge.net.connector import address_name
from drone_bridge.tools.wire.conversation import WireError

CONNECT_TIMEOUT_S = 5.0
SEND_TIMEOUT_S = 10.0
_LEAVE_TIMEOUT_S = 0.3  # for the peer to read what was sent last
_RECEIVE_BYTES = 1 << 16


class Peer:
    """The other end of a TCP connection, or the one that UDP datagrams go to and come from."""

    def __init__(
        self, transport: str, host: str, port: int, *, is_listening: bool, say: Callable[[str], object]
    ) -> None:
        """Connect, or wait for whoever connects or sends first. Raises WireError."""
        self._is_tcp = transport == "tcp"
        where = address_name(host, port)
        try:
            kind = socket.SOCK_STREAM if self._is_tcp else socket.SOCK_DGRAM
            family, *_, address = socket.getaddrinfo(host, port, type=kind)[0]
            self._socket = socket.socket(family, kind)
            if is_listening:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._socket.bind(address)
                self._listen(say)
            else:
                self._socket.settimeout(CONNECT_TIMEOUT_S)
                self._socket.connect(address)
            if self._is_tcp:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            problem = "can't be listened on" if is_listening else "can't be reached"
            raise WireError(f"{where} {problem}: {error.strerror or error}.") from error

    def _listen(self, say: Callable[[str], object]) -> None:
        opened = self._socket
        if self._is_tcp:
            opened.listen(1)
        say(f"Waiting on {address_name(*opened.getsockname()[:2])}.")
        if self._is_tcp:
            self._socket, _ = opened.accept()
            opened.close()
        else:
            _, caller = opened.recvfrom(0, socket.MSG_PEEK)
            opened.connect(caller)

    def send(self, data: bytes | memoryview) -> None:
        """Send a piece or a datagram. Raises WireError after SEND_TIMEOUT_S, and OSError."""
        self._socket.settimeout(SEND_TIMEOUT_S)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise WireError(f"The other side has taken nothing for {SEND_TIMEOUT_S:g} s.") from None
        except ConnectionRefusedError:  # reported for an earlier datagram
            if self._is_tcp:
                raise

    def receive(self, timeout_s: float) -> bytes:
        """Return what comes next; nothing at all is the end of a stream. Raises TimeoutError, and OSError."""
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            with contextlib.suppress(ConnectionRefusedError):  # nobody has that UDP port: somebody may have it yet
                return self._socket.recv(_RECEIVE_BYTES)
        raise TimeoutError

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(_LEAVE_TIMEOUT_S)
            while self._is_tcp and self._socket.recv(_RECEIVE_BYTES):
                pass
        self._socket.close()
