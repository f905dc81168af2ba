# SPDX-License-Identifier: Apache-2.0
"""OneStream: blocking TCP link of a program to one peer at a time."""

from __future__ import annotations

import argparse
from typing import Any

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.link_loop import Connected, Disconnected, ReceivedData, StreamLink
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.programs.program import print_event, print_retry
from drone_bridge.wire.addresses import address_name


class OneStream:
    """Link with one stream at a time. Further connections are refused meanwhile."""

    def __init__(self, link: StreamLink, cancellation: Cancellation) -> None:
        self._link, self._cancellation = link, cancellation
        self._peer: Any = None
        self._was_open = False

    @property
    def peer(self) -> str:
        """Address of the connected peer."""
        return str(self._peer)

    def open(self) -> None:
        """Wait for a peer. Raises LinkCancelledError.

        Reconnecting backs off first, for a peer that accepts connections and closes them.
        """
        delay_s = self._link.backoff.next_delay_s() if self._was_open and isinstance(self._link, TcpPeer) else 0.0
        if self._cancellation.wait(delay_s):
            raise LinkCancelledError("Connecting was cancelled.")
        self._was_open = True
        self._link.open()
        while not isinstance(arrived := receive(self._link, self._cancellation), Connected):
            pass
        self._peer = arrived.source

    def has_served(self) -> None:
        """Reset the backoff, since the peer has proved useful."""
        self._link.backoff.reset()

    def receive(self) -> bytes:
        """Wait for data and return it, or b"" at the end of the stream.

        Raises LinkCancelledError, and LinkError if the connection is lost.
        """
        while True:
            arrived: Any = receive(self._link, self._cancellation)
            if arrived.source is self._peer:
                break
            if isinstance(arrived, Connected):
                print_event(f"refused {arrived.source}: one at a time")
                self._link.disconnect(arrived.source)
        if isinstance(arrived, Disconnected) and not arrived.is_regular:
            raise LinkError(arrived.sentence)
        return arrived.data if isinstance(arrived, ReceivedData) else b""

    def send(self, *pieces: bytes | memoryview) -> None:
        """Send pieces one by one, without waiting for the peer."""
        for piece in pieces:
            self._link.send(piece, self._peer)

    def leave(self) -> None:
        """Close the stream after the delivery of what was sent."""
        self._link.disconnect(self._peer)


def make_link(options: argparse.Namespace, cancellation: Cancellation, stream: StreamOptions) -> TcpPort | TcpPeer:
    """Return a link for --role, --host and --port. It prints its address and its errors.

    Raises LinkError if listening on the address fails.
    """
    if options.role == "listen":
        link = TcpPort(options.host, options.port, options=stream)
        print_event(f"listening on {address_name(options.host, link.port)}")
        return link
    return TcpPeer(options.host, options.port, print_retry, options=stream, cancellation=cancellation)
