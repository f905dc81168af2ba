# SPDX-License-Identifier: Apache-2.0
"""PacketQueue: packets of video that wait for the decoder, in order. Pure.

A decoder shows wrong pictures after a lost packet, without an error, until one that needs no other (a key). So after a
gap in the numbers, packets wait for the next key. A decoder that is too slow goes on with the newest key.
"""

from collections import deque
from typing import Any, NamedTuple

from drone_bridge.pictures.source import VideoFrame

#: Most packets that wait: half a second of an AR.Drone 2's video, with at least one key.
MOST_WAITING = 15


class QueuedFrame(NamedTuple):
    """Frame with its time of arrival: a stamp for messages, and seconds of the local clock."""

    frame: VideoFrame
    stamp: Any
    received_s: float


class PacketQueue:
    """Queue of one stream after another."""

    def __init__(self) -> None:
        """Start empty: the first packet has to be a key."""
        self._waiting: deque[QueuedFrame] = deque()
        self._newest: VideoFrame | None = None  # the last one that was taken in; None: a key has to come

    def __len__(self) -> int:
        return len(self._waiting)

    def restart(self) -> None:
        """Drop all packets, and wait for a key: the decoder has lost its pictures."""
        self._waiting.clear()
        self._newest = None

    def put(self, queued: QueuedFrame) -> int:
        """Append a packet; return the number of packets that are dropped. A key replaces a key that waits."""
        frame = queued.frame
        if not frame.is_key and not self._follows(frame):
            self._newest = None
            return 1
        self._newest = frame
        if self._waiting and frame.is_key and self._waiting[-1].frame.is_key:
            self._waiting.pop()  # it would show nothing newer
        self._waiting.append(queued)
        return self._shorten() if len(self._waiting) > MOST_WAITING else 0

    def next(self) -> QueuedFrame:
        """Take the oldest packet. There has to be one."""
        return self._waiting.popleft()

    def _follows(self, frame: VideoFrame) -> bool:
        before = self._newest
        return before is not None and (before.stream, before.number + 1) == (frame.stream, frame.number)

    def _shorten(self) -> int:
        """Drop packets up to the newest key that waits, or all of them."""
        keys = [place for place, each in enumerate(self._waiting) if each.frame.is_key]
        dropped = keys[-1] if keys and keys[-1] else len(self._waiting)
        for _ in range(dropped):
            self._waiting.popleft()
        if not self._waiting:
            self._newest = None
        return dropped
