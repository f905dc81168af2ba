# SPDX-License-Identifier: Apache-2.0
"""VideoPort: the UDP port to which the GUI forwards its drone's video, read for the newest packet only."""

import hashlib
import json
import math
from collections.abc import Callable
from typing import NamedTuple

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError, MakeTap, Tap
from drone_bridge.net.datagram_link import DatagramPort

#: How often a port is tried that another program has.
RETRY_S = 2.0
#: Datagrams that are read at a time, of which the newest is kept.
MAX_DRAINED = 64
#: Transports in the wire log: packets in full, or the size and the hash of each, as JSON.
IN_FULL, BY_HASH = "udp video", "udp video by hash"


#: The address of our own end and that of the peer, without ports.
Hosts = tuple[str, str]


class Taken(NamedTuple):
    """What was read at a time."""

    packet: bytes | None  # the newest of the peer
    received: int  # datagrams of the peer
    refused: int  # datagrams of other hosts
    refused_host: str  # the last of them


class VideoPort:
    """A port at our address towards the peer, bound as soon as it is free. For one thread."""

    def __init__(self, port: int, hosts: Callable[[], Hosts | None], log: MakeTap | None) -> None:
        """Begin unbound.

        Args:
            port: the number.
            hosts: returns our address towards the peer and the peer's, None while they are unknown.
            log: where bytes are logged.
        """
        self._number, self._hosts, self._log = port, hosts, log
        self._port: DatagramPort | None = None
        self._bound: Hosts | None = None
        self._tried_s = -math.inf
        #: Why the port can't be bound, a sentence; empty while it is.
        self.problem = ""

    @property
    def is_open(self) -> bool:
        return self._port is not None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a packet, while open."""
        assert self._port
        return self._port.files()[0].fileno()

    def keep_open(self) -> None:
        """Bind the port if it is time to, and again where our address towards the peer has changed."""
        hosts = self._hosts()
        if hosts is None:
            return
        if self._bound and hosts[0] != self._bound[0]:
            self.close()
        now_s = elapsed_s()
        if self._port is None and now_s >= self._tried_s + RETRY_S:
            self._tried_s = now_s
            try:
                self._port, self.problem = DatagramPort(hosts[0], self._number, self._log), ""
            except LinkError as error:
                self.problem = str(error)
        self._bound = hosts

    def take(self) -> Taken:
        """Return the newest of the packets that have come; MAX_DRAINED are read at most."""
        packet, received, refused, refused_host = None, 0, 0, ""
        try:
            for _ in range(MAX_DRAINED):
                if self._port is None or self._bound is None or (datagram := self._port.receive()) is None:
                    break
                if datagram.source[0] != self._bound[1]:
                    refused, refused_host = refused + 1, datagram.source[0]
                    continue
                packet, received = datagram.data, received + 1
        except LinkError as error:
            self.close()
            self.problem = str(error)
        return Taken(packet, received, refused, refused_host)

    def close(self) -> None:
        if self._port:
            self._port.close()
        self._port = self._bound = None


def video_log(log: MakeTap | None, in_full: bool) -> MakeTap | None:
    """Return how packets of video are logged: as they are, or by their size and hash."""
    if log is None:
        return None

    def make(_: str, own: str, peer: str) -> Tap:
        tap = log(IN_FULL if in_full else BY_HASH, own, peer)
        if in_full:
            return tap

        def put(direction: str, data: bytes | memoryview, who: str = peer) -> None:
            digest = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            tap(direction, json.dumps(digest).encode(), who)

        return put

    return make
