# SPDX-License-Identifier: Apache-2.0
"""Marks in pixels that identify each image and its age."""

import struct
from collections.abc import Iterable
from typing import NamedTuple

SIDES = ("left", "right")
FILL = {"left": 0x40, "right": 0xC0}  # value of each byte outside of marks
_MARK = struct.Struct(">IIQ")
SIZE = _MARK.size  # bytes; an image begins and ends with the same mark


class Mark(NamedTuple):
    """Identity of a frame in a measurement."""

    measurement: int  # 0 is the warm-up
    frame: int  # from 0 on, in each measurement
    sent_ns: int  # CLOCK_MONOTONIC just before the frame's first byte was passed to the kernel

    @property
    def thrust(self) -> float:
        """Thrust, N, with which a controller answers this frame. It differs from that of adjacent frames."""
        return 1.0 + self.frame % 16


def write(frame: bytearray, starts: Iterable[int], image_bytes: int, mark: Mark) -> None:
    """Write the mark into the images of a frame that start at these positions."""
    packed = _MARK.pack(*mark)
    for start in starts:
        frame[start : start + SIZE] = packed
        frame[start + image_bytes - SIZE : start + image_bytes] = packed


def read(pixels: memoryview, side: str) -> Mark:
    """Return the mark of an undamaged image. Raises ValueError for any other."""
    first, last = bytes(pixels[:SIZE]), bytes(pixels[-SIZE:])
    if first != last:
        raise ValueError(f"The {side} image is a mix of two: it begins with {first.hex()} and ends with {last.hex()}.")
    if pixels[len(pixels) // 2] != FILL[side]:
        raise ValueError(f"The {side} image has {pixels[len(pixels) // 2]} in its middle instead of {FILL[side]}.")
    return Mark(*_MARK.unpack(first))
