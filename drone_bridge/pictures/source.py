# SPDX-License-Identifier: Apache-2.0
"""PictureSource: from which CameraTopics read video packets, one picture each."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

#: Address of our own end and that of the peer, without ports.
Hosts = tuple[str, str]


H264 = "drone_bridge.pictures.work:decode_h264"


class VideoFrame(NamedTuple):
    """Packet of video, and how it is decoded."""

    data: bytes
    work: str  # import path of the child's function
    camera: str = ""  # its name; empty: the size of the picture tells
    # Of pictures that need others:
    is_key: bool = True  # whether it needs no other one
    number: int = 0  # increases by one
    stream: int | None = None  # of the numbers; None: no picture needs another


class ReadResult(NamedTuple):
    """Packets read at a time."""

    frames: Sequence[VideoFrame]  # of the peer, in order, without those that a newer one has replaced
    received: int  # number of packets of the peer
    refused: int  # number of packets of other hosts
    refused_host: str  # last one of these


NOTHING = ReadResult((), 0, 0, "")


class PictureSource(Protocol):
    """Source that opens itself, and is read at a limited rate. Used by one thread."""

    #: Name of the peer in sentences.
    peer: str
    #: Action that makes the peer send video.
    advice: str
    #: Why it can't be opened, a sentence; empty while it is open.
    problem: str

    @property
    def is_open(self) -> bool:
        """Whether it has a file."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a packet, while open."""

    def keep_open(self, is_wanted: bool) -> None:
        """Open it if a retry is due. A source that burdens its peer is closed while no picture is wanted."""

    @property
    def left_s(self) -> float:
        """Seconds until it may be read again; 0 or less if it may be read now."""

    def take(self, rate_hz: float) -> ReadResult:
        """Return waiting packets. Nothing is read before it is due."""

    def drop(self) -> int:
        """Drop waiting packets, which may be stale, and return their number."""

    def close(self) -> None:
        """Close it."""
