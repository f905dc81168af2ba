# SPDX-License-Identifier: Apache-2.0
"""Pairs of (run, level) in a packet: the position after a pair that starts at any bit.

The start of a pair is known only after the previous pairs were read, which is too slow code by code in Python. Instead,
numpy looks up the length of the pair that would start at *each* bit of the packet. Following several of these steps at
a time finds the end of any block in a few hops. All blocks are then read together, pair by pair.
"""

import numpy as np
import numpy.typing as npt

from drone_bridge.ar_drone.uvlc.bits import READABLE_BEYOND_END
from drone_bridge.ar_drone.uvlc.layout import COEFFICIENTS
from drone_bridge.ar_drone.uvlc.run_level import (
    IS_END,
    LEVEL_BITS,
    PREFIX_BITS,
    RUN_BITS,
    Integers,
    Lengths,
    level_of,
    run_of,
)

_DOUBLINGS = 4
#: Hops from the first pair of a block to its end, the 64th pair at most.
_MAX_HOPS = COEFFICIENTS // 2**_DOUBLINGS


class Pairs:
    """Pairs of a packet."""

    def __init__(self, windows: npt.NDArray[np.uint32]) -> None:
        """Look up the pair at each bit of a packet's windows.

        A pair that ends a block points to itself. An invalid one, or one that leaves the packet, points to the packet's
        end, where zeros are invalid pairs that point to themselves.
        """
        self._windows = windows
        beyond = len(windows) - READABLE_BEYOND_END
        positions = np.arange(len(windows))
        prefixes = (windows >> np.uint32(32 - PREFIX_BITS)).astype(np.intp)
        self._run_bits = RUN_BITS.take(prefixes)
        levels_at = positions + self._run_bits
        self._level_bits = LEVEL_BITS.take(prefixes).take(levels_at, mode="clip")
        is_pair = (self._run_bits > 0) & (self._level_bits > 0)
        is_end = is_pair & IS_END.take(prefixes).take(levels_at, mode="clip")
        pair_bits = (self._run_bits + self._level_bits) * is_pair
        self._end_bits: memoryview = (pair_bits * is_end).data
        self._next = positions + pair_bits * ~is_end
        self._next[~is_pair] = beyond
        np.minimum(self._next, beyond, out=self._next)
        hop = self._next
        for _ in range(_DOUBLINGS):
            hop = hop.take(hop)
        self._hop: memoryview = hop.data

    def after_block(self, first: int) -> int | None:
        """Return the position after the block whose first pair is here, or None if it has no end."""
        at = first
        for _ in range(_MAX_HOPS):
            at = self._hop[at]
            bits: int = self._end_bits[at]
            if bits:
                return at + bits
        return None

    def of_blocks(self, firsts: Integers) -> tuple[Integers, Integers, Integers]:
        """Return each level, the index of its block, and its position along the zigzag, which may exceed the block.

        Args:
            firsts: positions of the first pairs of blocks that have an end.
        """
        at: Integers = firsts
        blocks: Integers = np.arange(len(firsts))
        places: Integers = np.zeros(len(firsts), np.int64)
        found: list[tuple[Integers, Integers, Integers]] = []
        while len(at):
            run_bits = self._run_bits.take(at)
            levels = level_of(self._codes(at + run_bits, self._level_bits.take(at)))
            kept = np.flatnonzero(levels)
            at, blocks, run_bits = at.take(kept), blocks.take(kept), run_bits.take(kept)
            places = places.take(kept) + run_of(self._codes(at, run_bits), run_bits) + 1
            found.append((levels.take(kept), blocks, places))
            at = self._next.take(at)
        levels, blocks, places = (np.concatenate(each) for each in zip(*found, strict=True))
        return levels, blocks, places

    def _codes(self, at: Integers, bits: Lengths) -> Integers:
        """Return this number of bits at positions, as numbers."""
        return self._windows.take(at).astype(np.int64) >> np.uint8(32) - bits
