# SPDX-License-Identifier: Apache-2.0
"""VideoPort: UDP port to which a peer sends video."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError, MakeTap
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.pictures.source import Hosts, ReadResult, VideoFrame

#: Retry interval for a port that another program uses, s.
RETRY_S = 2.0
#: Maximum number of datagrams read at a time.
MAX_DRAINED = 64
#: Maximum number of datagrams dropped at a time. A socket's buffer has room for fewer.
MAX_STALE = 64 * MAX_DRAINED
#: Transport in the wire log.
VIDEO = "udp video"


class VideoPort(ABC):
    """Port at our address towards the peer, bound as soon as it is free. Single-threaded."""

    #: See PictureSource.
    peer: str
    advice: str

    def __init__(self, port: int, hosts: Callable[[], Hosts | None], log: MakeTap | None) -> None:
        """Start unbound.

        Args:
            port: port number.
            hosts: returns our address towards the peer and the peer's, None while unknown.
            log: log for bytes.
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

    def keep_open(self, is_wanted: bool) -> None:
        """Bind the port if a retry is due, and again after our address towards the peer, or the peer's, has changed."""
        hosts = self._hosts()
        if hosts is None:
            return
        if self._bound and hosts != self._bound:
            self.close()
        now_s = elapsed_s()
        if self._port is None and now_s >= self._tried_s + RETRY_S:
            self._tried_s = now_s
            try:
                self._port, self.problem = self._opened(hosts), ""
            except LinkError as error:
                self.problem = str(error)
        self._bound = hosts

    @property
    def left_s(self) -> float:
        return 0.0

    def take(self, rate_hz: float) -> ReadResult:
        """Return the frames of waiting datagrams, MAX_DRAINED at most."""
        packets: list[bytes] = []
        refused, refused_host = 0, ""
        try:
            for _ in range(MAX_DRAINED):
                if self._port is None or self._bound is None or (datagram := self._port.receive()) is None:
                    break
                if datagram.source[0] != self._bound[1]:
                    refused, refused_host = refused + 1, datagram.source[0]
                    continue
                packets.append(datagram.data)
        except LinkError as error:
            self.close()
            self.problem = str(error)
        return ReadResult(self._frames(packets), len(packets), refused, refused_host)

    def drop(self) -> int:
        """Drop waiting datagrams, which may be stale, and return their number."""
        dropped = 0
        for _ in range(MAX_STALE // MAX_DRAINED):
            taken = VideoPort.take(self, math.inf)
            dropped += taken.received + taken.refused
            if taken.received + taken.refused < MAX_DRAINED:
                break
        return dropped

    def _opened(self, hosts: Hosts) -> DatagramPort:
        """Bind the port. Raises LinkError."""
        return DatagramPort(hosts[0], self._number, self._log)

    @abstractmethod
    def _frames(self, packets: Sequence[bytes]) -> Sequence[VideoFrame]:
        """Return the frames of these datagrams."""

    def close(self) -> None:
        if self._port:
            self._port.close()
        self._port = self._bound = None


def video_log(log: MakeTap | None) -> MakeTap | None:
    """Return a log of the same packets as those of a transport of its own."""
    return log and (lambda _, own, peer: log(VIDEO, own, peer))
