# SPDX-License-Identifier: Apache-2.0
"""Listens for TCP links, to one peer at a time, for a thread that can be cancelled."""

import contextlib
import errno
import math
import socket
import threading
from collections.abc import Callable

from drone_bridge.net.connector import (
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    MakeTap,
    reason,
    wait_readable,
)
from drone_bridge.net.tcp import TcpStream, peer_name
from drone_bridge.wire.addresses import address_name

ACCEPT_RETRY_S = 0.5
#: A peer that has sent nothing at all for so long loses its place to the next one, however silent others may be.
FIRST_MESSAGE_S = 2.0
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free one. Raises LinkError if the address is not available.

    :: stands for all interfaces with IPv4 as well, whatever the system's default.
    """
    if not host:  # which sockets take for all interfaces
        raise LinkError("Can't listen on no host: to listen on all interfaces, name 0.0.0.0.")
    if not 0 <= port <= 65535:
        raise LinkError(f"Can't listen on port {port}: it has to be from 0 to 65535.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        is_ipv6, address = min((family == socket.AF_INET6, address) for family, *_, address in found)
        family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        takes_both = is_ipv6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=backlog, dualstack_ipv6=takes_both)
    except (OSError, ValueError) as error:
        raise LinkError(f"Can't listen on {address_name(host, port)}: {reason(error)}.") from error


class TcpListener:
    """Listens for one peer at a time. While one is connected, others are refused without disturbing it.

    A peer that connects after the current one has hung up, but before that was noticed here, is served next. So is one
    that connects when the current peer has been silent for too long; it replaces that peer. One that has never sent
    anything, as a port scanner or a health check, loses its place soon, but is not hung up on for that: some programs
    connect, and begin when their user does.
    """

    def __init__(
        self,
        host: str,
        port: int,
        cancellation: Cancellation,
        on_refused: Callable[[str], None],
        *,
        allowed_silence_s: Callable[[], float] = lambda: math.inf,
        wire_log: MakeTap | None = None,
    ) -> None:
        """Bind and listen; port 0 takes a free one.

        Args:
            host: the address of our own side.
            port: where to listen.
            cancellation: ends all waiting.
            on_refused: gets the name of each refused peer.
            allowed_silence_s: tells for how long a peer may be silent without losing its place to the next one.
            wire_log: where to log the bytes of every connection.

        Raises LinkError when the address is not available.
        """
        self._allowed_silence_s = allowed_silence_s
        self._successor: socket.socket | None = None  # of a peer that has lost its place
        self._cancellation = cancellation
        self._on_refused = on_refused
        self._wire_log = wire_log
        self._refuser: threading.Thread | None = None
        self.backoff = Backoff()
        self._socket = listening_socket(host, port, backlog=4)
        self._socket.setblocking(False)

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._socket.getsockname()[1])

    def open(self) -> TcpStream:
        """Wait for a peer and return its connection. Raises LinkCancelledError.

        The connection before has to be closed.
        """
        if self._refuser:
            self._refuser.join()
            self._refuser = None
        while self._successor or self._somebody_waits():
            accepted, self._successor = self._successor or self._accept(), None
            if not accepted:
                continue
            closed = Cancellation()
            try:
                stream = TcpStream(accepted, self._cancellation, closed.cancel, self._wire_log)
            except OSError:  # the peer has gone again
                closed.close()
                continue
            self._refuser = threading.Thread(
                target=self._refuse_others, args=[stream, closed], name="refuse", daemon=True
            )
            self._refuser.start()
            return stream
        raise LinkCancelledError("Listening was cancelled.")

    def close(self) -> None:
        """Stop listening. The connection has to be closed, or the cancellation set, before."""
        if self._refuser:
            self._refuser.join()
        if self._successor:
            self._successor.close()
        self._socket.close()

    def _refuse_others(self, stream: TcpStream, closed: Cancellation) -> None:
        """Refuse connections while one peer is connected, until it loses its place to one of them."""
        while self._successor is None and self._somebody_waits(closed) and not stream.has_ended():
            if other := self._accept(closed):
                with contextlib.suppress(OSError):  # it may have gone again
                    self._refuse_or_prefer(other, stream)
                if other is not self._successor:
                    other.close()
        closed.close()

    def _refuse_or_prefer(self, other: socket.socket, stream: TcpStream) -> None:
        silence_s = stream.silence_s
        allowed_s = self._allowed_silence_s()
        if silence_s <= (allowed_s if stream.has_heard else min(allowed_s, FIRST_MESSAGE_S)):
            self._on_refused(peer_name(other))
            return
        reason = f"{stream.peer} was silent for {silence_s:.1f} s, and is replaced by {peer_name(other)}."
        self._successor = other
        stream.remove(reason)

    def _somebody_waits(self, *until: Cancellation) -> bool:
        """Wait for a connection to accept; return false once cancelled or one of `until` is."""
        wait_readable([self._socket, self._cancellation, *until], None)
        return not any(cancellation.is_set for cancellation in (self._cancellation, *until))

    def _accept(self, *until: Cancellation) -> socket.socket | None:
        """Accept a connection; return None if there is none any more, or if that fails for now."""
        try:
            return self._socket.accept()[0]
        except OSError as error:
            if error.errno in _OUT_OF_RESOURCES:  # the peer stays in the queue: asking at once would not help
                wait_readable([self._cancellation, *until], ACCEPT_RETRY_S)
            return None
