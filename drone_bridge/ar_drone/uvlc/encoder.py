# SPDX-License-Identifier: Apache-2.0
"""Encoder of the AR.Drone's video packets: each macroblock is coded, with documented codes only."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from drone_bridge.ar_drone.uvlc import blocks, colours
from drone_bridge.ar_drone.uvlc.bits import in_order, packed
from drone_bridge.ar_drone.uvlc.dequantization import FACTORS, TRANSPOSED_ZIGZAG
from drone_bridge.ar_drone.uvlc.head import Head
from drone_bridge.ar_drone.uvlc.layout import (
    ALWAYS,
    BLOCKS,
    DC_BITS,
    END,
    MACROBLOCK_HEAD_BITS,
    MACROBLOCK_PIXELS,
    MAX_DC,
    MAX_PACKET_BYTES,
    MAX_QUANTIZER,
    QUANTIZER_BITS,
    SIZES,
    START,
    START_BITS,
    TABLE_MODE,
    TABLE_MODE_QUANTIZER,
    WORD_BYTES,
)
from drone_bridge.ar_drone.uvlc.run_level import (
    END_OF_BLOCK,
    END_OF_BLOCK_BITS,
    MAX_WRITTEN_LEVEL,
    Integers,
    codes_of_levels,
    codes_of_runs,
)
from drone_bridge.ar_drone.uvlc.transform import coefficients_of
from drone_bridge.wire.events import LocalProtocolError


def encode(rgb: npt.NDArray[np.uint8], quantizer: int = TABLE_MODE, number: int = 0) -> bytes:
    """Return the packet of a picture, at most MAX_PACKET_BYTES long.

    Args:
        rgb: height x width x 3, of one of SIZES.
        quantizer: 1 (finest) to 30, or 31, which is as fine as 2. If the packet would be too long, a coarser one is
            used. All pictures fit with 30. The finest ones reduce high contrast, as levels are limited to 127.
        number: counter of the picture, of which 32 bits are sent.

    Raises:
        LocalProtocolError: `rgb` has another shape or type, or the quantizer is out of range.
    """
    shape = tuple(rgb.shape)
    if rgb.dtype != np.uint8 or len(shape) != 3 or shape[2] != 3 or (shape[1], shape[0]) not in SIZES:
        known = " or ".join(f"{height} x {width} x 3" for width, height in SIZES)
        raise LocalProtocolError(f"A picture is {rgb.dtype} of shape {shape}, not uint8 of {known}.")
    if not 1 <= quantizer <= TABLE_MODE:
        raise LocalProtocolError(f"The quantizer is {quantizer}, not from 1 to {TABLE_MODE}.")
    rows = shape[0] // MACROBLOCK_PIXELS
    coefficients = coefficients_of(blocks.cut(*colours.planes_of(rgb)), rows)
    head = Head(shape[1], shape[0], quantizer, number & 0xFFFFFFFF)
    packet = _packet(head, coefficients)
    # This terminates: with MAX_QUANTIZER, samples from 0 to 255 need at most 52 kB of codes, at 320 x 240.
    while len(packet) > MAX_PACKET_BYTES:
        head = replace(head, quantizer=_coarser(head.quantizer))
        packet = _packet(head, coefficients)
    return packet


def _coarser(quantizer: int) -> int:
    return min(2 * (TABLE_MODE_QUANTIZER if quantizer == TABLE_MODE else quantizer), MAX_QUANTIZER)


def _packet(head: Head, coefficients: npt.NDArray[np.float32]) -> bytes:
    """Return the packet of a picture, of any length: head, rows and end, each aligned to whole bytes."""
    columns = head.width // MACROBLOCK_PIXELS
    codes, lengths, firsts = _codes_of_blocks(_levels(coefficients, head.quantizer))
    row_firsts = firsts[:: columns * BLOCKS]
    starts = [head.codes()]
    starts += [((START + row, head.quantizer), (START_BITS, QUANTIZER_BITS)) for row in range(1, len(row_firsts))]
    rows = zip(starts, np.split(codes, row_firsts[1:]), np.split(lengths, row_firsts[1:]), strict=True)
    parts = [
        packed(np.concatenate((start, row)), np.concatenate((start_lengths, row_lengths)))
        for (start, start_lengths), row, row_lengths in rows
    ]
    parts.append(packed(np.array([END]), np.array([START_BITS])))
    ordered = b"".join(parts)
    return in_order(ordered + bytes(-len(ordered) % WORD_BYTES))


def _levels(coefficients: npt.NDArray[np.float32], quantizer: int) -> Integers:
    """Quantize coefficients to the nearest levels: blocks x 64, along the zigzag.

    A DC is never 0, because the decoder of the GUI's programs would read past such a block.
    """
    levels = np.rint(coefficients.take(TRANSPOSED_ZIGZAG, axis=1) / FACTORS[quantizer].astype(np.float32))
    levels[:, 0] = np.clip(levels[:, 0], 1, MAX_DC)
    levels[:, 1:] = np.clip(levels[:, 1:], -MAX_WRITTEN_LEVEL, MAX_WRITTEN_LEVEL)
    whole: Integers = levels.astype(np.int64)
    return whole


def _codes_of_blocks(levels: Integers) -> tuple[Integers, Integers, Integers]:
    """Return all codes of a picture's blocks, their lengths in bits, and the index of each block's first code.

    The first code of a block is its DC, after the head of its macroblock for Y0. The last pair of a block includes the
    end of the block.
    """
    block, place = np.nonzero(levels[:, 1:])
    place += 1
    is_first = np.diff(block, prepend=-1) != 0
    is_last = np.diff(block, append=-1) != 0
    runs = place - np.where(is_first, 0, np.roll(place, 1)) - 1
    run_codes, run_bits = codes_of_runs(runs)
    level_codes, level_bits = codes_of_levels(levels[block, place])
    pairs, pair_bits = run_codes << level_bits | level_codes, run_bits + level_bits
    pairs = np.where(is_last, pairs << END_OF_BLOCK_BITS | END_OF_BLOCK, pairs)
    pair_bits += END_OF_BLOCK_BITS * is_last

    dc, dc_bits = levels[:, 0].copy(), np.full(len(levels), DC_BITS)
    pairs_of_block = np.bincount(block, minlength=len(levels))
    has_pairs = (pairs_of_block > 0).reshape(-1, BLOCKS)
    dc[::BLOCKS] |= (ALWAYS | (has_pairs << np.arange(BLOCKS)).sum(axis=1)) << DC_BITS
    dc_bits[::BLOCKS] += MACROBLOCK_HEAD_BITS

    pairs_before = np.cumsum(pairs_of_block) - pairs_of_block
    codes, lengths = np.insert(pairs, pairs_before, dc), np.insert(pair_bits, pairs_before, dc_bits)
    return codes, lengths, pairs_before + np.arange(len(levels))
