# SPDX-License-Identifier: Apache-2.0
"""bound_socket: creation of UDP sockets on a port, and the order in which a host's addresses are tried."""

import socket
import sys
from collections.abc import Iterable
from typing import Any

from drone_bridge.net.connector import LinkError, reason
from drone_bridge.net.listening import listening_error

MAX_DATAGRAM_BYTES = 65535  # the largest possible datagram, so none is truncated
#: Short, since opening a UDP link sends nothing, and a vehicle may be waiting for its next command.
LONGEST_DELAY_S = 1.0


def bound_socket(host: str, port: int, source: Any = None) -> socket.socket:
    """Return a bound socket; port 0 picks a free one. Raises LinkError if the address is not available.

    With the socket address of a source, it receives from this host only, and on Linux it shares the port with sockets
    for other sources: the system sorts datagrams by their source.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = ipv4_first(found)[0]
        opened = socket.socket(family, kind, protocol)
        try:
            if source and sys.platform == "linux":
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            opened.bind(address)
            if source and sys.platform == "linux":
                opened.connect((source[0], 0, *source[2:]))
        except OSError:
            opened.close()
            raise
    except (OSError, ValueError) as error:
        raise listening_error("udp", host, port, error) from error
    return opened


def claim(port: int, source: Any) -> socket.socket | None:
    """Claim a port's datagrams of a source, if sockets may share it, until the result is closed. Raises LinkError."""
    if sys.platform != "linux":
        return None
    claimed = socket.socket(socket.AF_UNIX)
    try:
        claimed.bind(f"\0drone_bridge {port} {source[0]}")  # a name of this machine, which ends with the socket
    except OSError as error:
        claimed.close()
        sentence = f"Another process receives what {source[0]} sends to port {port}: {reason(error)}."
        raise LinkError(sentence) from error
    return claimed


def ipv4_first(found: Iterable[Any]) -> list[Any]:
    """Sort results of getaddrinfo, IPv4 first: legacy programs use it, and UDP can't detect an unused address."""
    return sorted(found, key=lambda each: bool(each[0] == socket.AF_INET6))
