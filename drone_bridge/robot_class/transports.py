# SPDX-License-Identifier: Apache-2.0
"""Packets: framing of a Robot's binary packets. Further framings, the links of a Robot, and Camera and Lidar.

A class names its links. The first one carries its commands, and `host`, `port`, `serial` and `baud` are its parameters.
Others receive what the robot sends of its own accord to a port of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

#: Function from received bytes to the size of the first packet. 0: incomplete. Negative: number of bytes to skip. It
#: may raise DECODE_ERRORS, which end a TCP stream.
Framing = Callable[[bytes], int]
#: Maximum size of a packet of a stream, and of one that may have an image, bytes. A longer one ends the connection.
MAX_PACKET_BYTES, MAX_IMAGE_BYTES = 1 << 16, 1 << 22
#: Port of the emulator and the server of a robot with a serial line alone.
EMULATED_PORT = 7700
_WIDTHS = {"B": 1, "<H": 2, ">H": 2}


@dataclass(frozen=True, slots=True)
class Delimited:
    """Framing of packets that end with the same bytes, such as a line's. These belong to the packet."""

    end: bytes

    def __call__(self, data: bytes) -> int:
        at = data.find(self.end)
        return at + len(self.end) if at >= 0 else 0


@dataclass(frozen=True, slots=True)
class Packets:
    """Framing of packets that begin with the same bytes, and have their length or all one size.

    After a broken one, the next is sought. Its other bytes are skipped, as a line may lose some, and a reader may begin
    anywhere.
    """

    start: bytes
    length_at: int = 0
    """Place of the length."""
    checksum: Callable[[bytes], bool] | None = None
    """Function that returns whether a whole packet is valid."""
    extra: int = 0
    """Number of bytes after the length that it does not count."""
    length: Literal["B", "<H", ">H"] = "B"
    """Format of the length: a byte, or two with the lower (<H) or the higher one (>H) first."""
    size: int = 0
    """Size of packets without a length."""

    def __call__(self, data: bytes) -> int:
        start, begin = self.start, self.size or self.length_at + _WIDTHS[self.length]
        if data[: len(start)] != start[: len(data)]:
            return -self._to_next(data)
        if len(data) < begin:
            return 0
        counted = int.from_bytes(data[self.length_at : begin], "big" if self.length == ">H" else "little")
        size = self.size or begin + self.extra + counted
        if len(data) >= size and self.checksum and not self.checksum(data[:size]):
            return -self._to_next(data)
        return size

    def fault(self, data: bytes) -> str:
        """Return why bytes are no packet, a clause."""
        begin = self.size or self.length_at + _WIDTHS[self.length]
        if not data.startswith(self.start):
            return f"it does not begin with {self.start!r}"
        unchecked = replace(self, checksum=None)(data) if len(data) >= begin else 0
        if unchecked > len(data) or not unchecked:
            return f"its length says {unchecked or 'more'} bytes, and it has {len(data)}"
        return f"its checksum is refused by {getattr(self.checksum, '__qualname__', 'checksum')}()"

    def _to_next(self, data: bytes) -> int:
        """Return the number of bytes before the next one that may begin a packet."""
        at = data.find(self.start[:1], 1)
        return at if at > 0 else len(data)


@dataclass(frozen=True, slots=True)
class Udp:
    """Datagrams. Each one is a packet, or has several by the framing."""

    port: int
    """Port of the robot, or of ours if we listen."""
    framing: Framing | None = None
    commands: Framing | None = None
    """Framing of the packets to the robot, if it is another one."""
    listen: bool = False
    """Whether the robot sends to this port of ours by itself. Robots are told apart by their address.

    If the first link does, the bridge waits for the robot, and sends commands to the socket from which it sends. Only a
    bridge and an operator exist for such a robot."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """Stream over TCP. The same packets may also come over a serial line, by the parameter `serial`."""

    port: int
    framing: Framing | None = None
    commands: Framing | None = None
    """Framing of the packets to the robot, if it is another one."""
    baud: int = 115200


@dataclass(frozen=True, slots=True)
class Serial:
    """Serial line alone: eight data bits, no parity, one stop bit. Its server, and emulator by default, have a port."""

    baud: int = 115200
    framing: Framing | None = None
    commands: Framing | None = None
    """Framing of the packets to the robot, if it is another one."""
    port: int = EMULATED_PORT
    """Port of the emulator and the server."""


#: A link of a Robot.
Link = Udp | Tcp | Serial


@dataclass(frozen=True, slots=True)
class Lidar:
    """Lidar that turns in its plane, whose rays are of `Telemetry.scan`."""

    range_min: float
    range_max: float
    """Shortest and longest distance that it measures, m."""
    scan_s: float
    """Time of a turn, s, from the first ray of a scan to that of the next one."""
    rays: int = 360
    """Number of rays of each scan."""
    angle_min: float = 0.0
    """Direction of the first ray in its frame `laser`, rad: 0 is forward. Further ones are to the left of it."""
    increment: float = math.tau / 360
    """Angle from each ray to the next, rad."""
    mount: tuple[float, float, float] = (0.0, 0.0, 0.0)
    yaw: float = 0.0
    """Place, m, and heading, rad, of this frame in `base_link`."""


@dataclass(frozen=True, slots=True)
class Camera:
    """Camera that looks forward: images in the reports, or H.264 over a link of its own."""

    encoding: Literal["rgb8", "jpeg", "h264"]
    """rgb8, jpeg: `Telemetry.image` has its images. h264: Annex B in datagrams of `link`, of which only a picture's
    last one is shorter than the others."""
    link: Udp | None = None
    ask: bytes = b""
    """Packet to the robot that asks for video, sent while pictures are wanted and none come. It may be answered."""
    off: bytes = b""
    """Packet by which a client ends the video."""
    width: int = 0
    height: int = 0
    """Size of a picture of `link`, pixels."""
    focal: tuple[float, float] = (0.0, 0.0)
    """Focal lengths, pixels: for camera_info without a calibration file."""
    center: tuple[float, float] = (0.0, 0.0)
    """Principal point, pixels."""
