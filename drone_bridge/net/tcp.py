# SPDX-License-Identifier: Apache-2.0
"""TCP sockets: options (no delay, keepalive), connecting with cancellation, and listening."""

import contextlib
import os
import select
import socket
from typing import Any

from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.listening import listening_error

KEEPALIVE_IDLE_S = 5
KEEPALIVE_INTERVAL_S = 2
KEEPALIVE_PROBES = 3


def vanished_after_s() -> int:
    """Return the keepalive timeout, s, after which a peer without power or cable is considered disconnected."""
    return KEEPALIVE_IDLE_S + KEEPALIVE_PROBES * KEEPALIVE_INTERVAL_S


def set_options(connected: socket.socket) -> None:
    """Disable Nagle's algorithm, and enable keepalive probes of a silent peer."""
    # The protocols consist of small requests and responses, which must not wait for each other.
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
    """Time out a peer that does not acknowledge sent data. Otherwise TCP retransmits for about 15 minutes.

    Linux can't distinguish it from a peer that does not read. Don't use this for peers that may be stopped inside a
    message.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, vanished_after_s() * 1000)


CONNECT_TIMEOUT_S = 5.0


def connect(connecting: socket.socket, address: Any, cancellation: Cancellation) -> None:
    """Connect a new socket and make it non-blocking. Raises OSError and LinkCancelledError."""
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
        # TCP self-connection: on this machine, a closed port in the ephemeral range can connect to itself.
        raise ConnectionRefusedError("no program listens there")


def listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free one. Raises LinkError if the address is not available.

    :: listens on all interfaces, IPv4 included, regardless of the system's default.
    """
    if not host:  # sockets would listen on all interfaces
        raise LinkError("The host to listen on is empty: name an address, or 0.0.0.0 for all interfaces.")
    if not 0 <= port <= 65535:
        raise LinkError(f"Can't listen on port {port}: it must be from 0 to 65535.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        is_ipv6, address = min((family == socket.AF_INET6, address) for family, *_, address in found)
        family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        takes_both = is_ipv6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=backlog, dualstack_ipv6=takes_both)
    except (OSError, ValueError) as error:
        raise listening_error("tcp", host, port, error) from error
