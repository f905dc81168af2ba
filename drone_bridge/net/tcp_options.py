# SPDX-License-Identifier: Apache-2.0
"""TCP socket options: small messages are sent at once, and a vanished peer is noticed."""

import socket
from typing import Final

KEEPALIVE_IDLE_S: Final = 5
KEEPALIVE_INTERVAL_S: Final = 2
KEEPALIVE_PROBES: Final = 3


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
