# SPDX-License-Identifier: Apache-2.0
"""Reader of a packet's rows: positions of the blocks' levels, and their coefficients."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from drone_bridge.ar_drone.uvlc.bits import READABLE_BEYOND_END, windows
from drone_bridge.ar_drone.uvlc.dequantization import FACTORS, TRANSPOSED_ZIGZAG
from drone_bridge.ar_drone.uvlc.head import checked_quantizer
from drone_bridge.ar_drone.uvlc.layout import (
    ALWAYS,
    BLOCKS,
    CHANGES_QUANTIZER,
    COEFFICIENTS,
    DC_BITS,
    END,
    HEAD_BITS,
    MACROBLOCK_HEAD_BITS,
    NOT_CODED,
    QUANTIZER_BITS,
    START,
    START_BITS,
)
from drone_bridge.ar_drone.uvlc.pairs import Pairs
from drone_bridge.wire.events import RemoteProtocolError

_MAX_SKIPPED_BYTES = 3


@dataclass(slots=True)
class Levels:
    """Positions of the levels of a packet's blocks."""

    windows: npt.NDArray[np.uint32]
    pairs: Pairs
    #: Number, quantizer, and position of the DC, for each coded block.
    coded: list[int] = field(default_factory=list)
    quantizers: list[int] = field(default_factory=list)
    dc_positions: list[int] = field(default_factory=list)
    #: Index in `coded`, and position of the first pair, for each block that has pairs.
    with_pairs: list[int] = field(default_factory=list)
    first_pairs: list[int] = field(default_factory=list)

    def coefficients(self, count: int) -> npt.NDArray[np.float64]:
        """Return the coefficients of blocks: count x 64, each by column. Raises RemoteProtocolError."""
        coefficients = np.zeros((count, COEFFICIENTS))
        if not self.coded:
            return coefficients
        coded, quantizers = np.array(self.coded), np.array(self.quantizers)
        dc = self.windows.take(np.array(self.dc_positions)) >> np.uint32(32 - DC_BITS)
        coefficients[coded, 0] = dc * FACTORS[quantizers, 0]
        if self.with_pairs:
            levels, block, places = self.pairs.of_blocks(np.array(self.first_pairs))
            if places.size and places.max() >= COEFFICIENTS:
                raise RemoteProtocolError(f"A block of a picture has more than {COEFFICIENTS} coefficients.")
            index = np.array(self.with_pairs).take(block)
            values = levels * FACTORS[quantizers.take(index), places]
            coefficients[coded.take(index), TRANSPOSED_ZIGZAG.take(places)] = values
        return coefficients


class RowReader:
    """Reader of the rows of one packet, block by block."""

    def __init__(self, ordered: bytes) -> None:
        of_bits = windows(ordered)
        self._bits = of_bits.data
        self._end = len(of_bits) - READABLE_BEYOND_END
        self._levels = Levels(of_bits, Pairs(of_bits))
        #: Bit after the last one that was read. Read only.
        self.position = HEAD_BITS
        self._row = 0
        #: Zero bytes skipped before start codes.
        self.skipped_bytes = 0

    def read(self, rows: int, columns: int, quantizer: int) -> Levels:
        """Return the levels between the end of the head and the end of the picture. Raises RemoteProtocolError.

        Args:
            rows: number of macroblock rows.
            columns: number of macroblock columns.
            quantizer: of row 0.
        """
        for row in range(rows):
            self._row = row
            if row:
                self._read_start(START + row)
                quantizer = checked_quantizer(self._bits[self.position] >> 32 - QUANTIZER_BITS, row)
                self.position += QUANTIZER_BITS
            for column in range(columns):
                self._read_macroblock((row * columns + column) * BLOCKS, quantizer)
        self._read_start(END)
        return self._levels

    def _read_start(self, expected: int) -> None:
        self.position = -(-self.position // 8) * 8
        for _ in range(_MAX_SKIPPED_BYTES + 1):
            start = self._bits[self.position] >> 32 - START_BITS
            if start == expected or self._bits[self.position] >> 24:
                break
            self.position += 8
            self.skipped_bytes += 1
        if self.position + START_BITS > self._end:
            raise RemoteProtocolError(f"A picture is truncated: its start code {expected:#x} is missing.")
        if start != expected:
            raise RemoteProtocolError(f"A picture has the start code {start:#x} instead of {expected:#x}.")
        self.position += START_BITS

    def _read_macroblock(self, block: int, quantizer: int) -> None:
        self._refuse_beyond_end()
        head = self._bits[self.position] >> 32 - MACROBLOCK_HEAD_BITS
        if head & NOT_CODED:
            self.position += 1
            return
        if not head & ALWAYS:
            raise RemoteProtocolError(f"Row {self._row} of a picture has a macroblock without its marker bit.")
        if head & CHANGES_QUANTIZER:
            raise RemoteProtocolError(f"Row {self._row} of a picture changes its quantizer, which is not supported.")
        levels, at = self._levels, self.position + MACROBLOCK_HEAD_BITS
        levels.quantizers += [quantizer] * BLOCKS
        for number in range(BLOCKS):
            levels.dc_positions.append(at)
            at += DC_BITS
            if head >> number & 1:
                levels.with_pairs.append(len(levels.coded))
                levels.first_pairs.append(at)
                self.position = at
                self._refuse_beyond_end()
                after = levels.pairs.after_block(at)
                if after is None:
                    raise RemoteProtocolError(
                        f"Row {self._row} of a picture has a block without an end after {COEFFICIENTS} codes."
                    )
                at = after
            levels.coded.append(block + number)
        self.position = at

    def _refuse_beyond_end(self) -> None:
        if self.position >= self._end:
            raise RemoteProtocolError(f"A picture is truncated in its row {self._row}.")
