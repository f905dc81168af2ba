# SPDX-License-Identifier: Apache-2.0
"""Bits of a packet in the order of its words, for reading at any position, and writing."""

import numpy as np
import numpy.typing as npt

from drone_bridge.ar_drone.uvlc.layout import WORD_BYTES

#: Readable zero bits after the last bit of the packet.
READABLE_BEYOND_END = 256
_SHIFTS = np.arange(8, dtype=np.uint32)


def in_order(data: bytes) -> bytes:
    """Swap the bytes of each 32-bit word, which converts a packet to bit order, and back.

    Bytes after the last complete word are dropped.
    """
    return np.frombuffer(data, "<u4", len(data) // WORD_BYTES).byteswap().tobytes()


def windows(ordered: bytes) -> npt.NDArray[np.uint32]:
    """Return the 32 bits from each bit of ordered bytes on, including READABLE_BEYOND_END bits after them.

    The first 25 bits of each are valid.
    """
    padded = np.frombuffer(ordered + bytes(READABLE_BEYOND_END // 8 + WORD_BYTES - 1), np.uint8).astype(np.uint32)
    words = padded[:-3] << 24 | padded[1:-2] << 16 | padded[2:-1] << 8 | padded[3:]
    shifted: npt.NDArray[np.uint32] = np.left_shift(words[:, None], _SHIFTS).reshape(-1)
    return shifted


def packed(codes: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> bytes:
    """Concatenate codes with these bit lengths, padded with zero bits to a whole byte."""
    ends = np.cumsum(lengths)
    shifts = np.repeat(ends, lengths) - np.arange(1, ends[-1] + 1)
    return np.packbits((np.repeat(codes, lengths) >> shifts & 1).astype(np.uint8)).tobytes()
