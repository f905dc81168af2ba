# SPDX-License-Identifier: Apache-2.0
"""PictureSource: from which CameraTopics read video packets, one picture each."""

from typing import NamedTuple, Protocol

#: Address of our own end and that of the peer, without ports.
Hosts = tuple[str, str]


class ReadResult(NamedTuple):
    """Packets read at a time."""

    packet: bytes | None  # newest one of the peer
    received: int  # number of packets of the peer
    refused: int  # number of packets of other hosts
    refused_host: str  # last one of these


NOTHING = ReadResult(None, 0, 0, "")


class PictureSource(Protocol):
    """Source that opens itself, and is read at a limited rate. Used by one thread."""

    #: Name of the peer in sentences.
    peer: str
    #: How to make the peer send video, as half a sentence.
    advice: str
    #: Why it can't be opened, a sentence; empty while it is open.
    problem: str

    @property
    def is_open(self) -> bool:
        """Whether it has a file."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a packet, while open."""

    def keep_open(self) -> None:
        """Open it if a retry is due."""

    @property
    def left_s(self) -> float:
        """Seconds until it may be read again; 0 or less if it may be read now."""

    def take(self, rate_hz: float) -> ReadResult:
        """Return the newest packet and count the others. Nothing is read before it is due."""

    def drop(self) -> int:
        """Drop waiting packets, which may be stale, and return their number."""

    def close(self) -> None:
        """Close it."""
