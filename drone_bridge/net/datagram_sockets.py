# SPDX-License-Identifier: Apache-2.0
"""bound_socket: UDP sockets on a port, and in which order the addresses of a host are tried."""

import socket
from collections.abc import Iterable
from typing import Any

from drone_bridge.net.connector import LinkError, reason
from drone_bridge.wire.addresses import address_name

MAX_DATAGRAM_BYTES = 65535  # no datagram is larger, so none is ever cut off
#: Opening a UDP link sends nothing and so storms nobody, while a vehicle may be waiting for its next command.
LONGEST_DELAY_S = 1.0


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is bound; port 0 takes a free one. Raises LinkError when the address is not available."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = ipv4_first(found)[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.bind(address)
        except OSError:
            opened.close()
            raise
    except (OSError, ValueError) as error:
        raise LinkError(f"Can't listen on {address_name(host, port)}: {reason(error)}.") from error
    return opened


def ipv4_first(found: Iterable[Any]) -> list[Any]:
    """Return what getaddrinfo found, IPv4 first: legacy programs have it, and an unused address can't be noticed."""
    return sorted(found, key=lambda each: bool(each[0] == socket.AF_INET6))
