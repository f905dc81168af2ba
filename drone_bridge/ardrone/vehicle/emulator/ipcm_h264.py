# SPDX-License-Identifier: Apache-2.0
"""IpcmEncoder: H.264 without compression, for an emulated camera on this machine.

Macroblocks of 16 x 16 pixels are sent as their samples (I_PCM), or are skipped (P_Skip) where they have not changed
since the picture before. A decoder shows exactly these samples. A picture has up to 1.5 bytes per pixel, which is for
loopback alone.

The stream is Baseline (ITU-T H.264, Annex B): one slice per picture, one reference, no deblocking, pictures in order.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

MACROBLOCK = 16  # pixels
#: Two zeros before a byte that would look like a start code.
_LOOKALIKE = re.compile(rb"\x00\x00(?=[\x00-\x03])")
_START = b"\0\0\0\1"
_SPS, _PPS, _IDR, _PREDICTED = 0x67, 0x68, 0x65, 0x41  # with their importance
_FRAME_NUMBER_BITS = 8
_I_PCM, _I_PCM_IN_P = 25, 30

Samples = npt.NDArray[np.uint8]


class _Bits:
    """Bits of one unit, most significant bit first."""

    def __init__(self) -> None:
        self._bits = ""

    def put(self, value: int, count: int) -> _Bits:
        """Append a number of this many bits."""
        self._bits += f"{value:0{count}b}"
        return self

    def put_ue(self, *values: int) -> _Bits:
        """Append Exp-Golomb codes of numbers that are not negative."""
        for value in values:
            code = f"{value + 1:b}"
            self._bits += "0" * (len(code) - 1) + code
        return self

    def aligned(self) -> bytes:
        """Fill up with zeros, and return the bytes. What is put next begins a byte."""
        self._bits += "0" * (-len(self._bits) % 8)
        taken, self._bits = self._bits, ""
        return int(taken, 2).to_bytes(len(taken) // 8, "big") if taken else b""

    def end(self) -> bytes:
        """Put the end of the unit, and return the bytes."""
        self._bits += "1"
        return self.aligned()


class IpcmEncoder:
    """Encoder of one stream, of planes of Y, Cb and Cr (4:2:0)."""

    def __init__(self, width: int, height: int) -> None:
        """Start without a picture. Width and height, in pixels, are even."""
        self.width, self.height = width, height
        self._columns, self._rows = -(-width // MACROBLOCK), -(-height // MACROBLOCK)
        self._before: Samples | None = None
        self._number = self._idr_number = 0

    def encode(self, y: Samples, cb: Samples, cr: Samples, *, is_idr: bool) -> bytes:
        """Return a picture.

        Args:
            y: luma, height x width.
            cb: blue chroma, height/2 x width/2.
            cr: red chroma, height/2 x width/2.
            is_idr: whether it can be decoded without the pictures before. The first one can in any case.
        """
        blocks = self._blocks(y, cb, cr)
        before, self._before = self._before, blocks
        if is_idr or before is None:
            self._number, self._idr_number = 0, self._idr_number ^ 1
            return _unit(_SPS, self._sps()) + _unit(_PPS, _pps()) + _unit(_IDR, self._idr(blocks))
        self._number += 1
        return _unit(_PREDICTED, self._predicted(blocks, (blocks != before).any(axis=1).tolist()))

    def _blocks(self, y: Samples, cb: Samples, cr: Samples) -> Samples:
        """Return macroblocks x 384 samples."""
        parts = []
        for plane, side in ((y, MACROBLOCK), (cb, MACROBLOCK // 2), (cr, MACROBLOCK // 2)):
            missing = self._rows * side - plane.shape[0], self._columns * side - plane.shape[1]
            whole = np.pad(plane, ((0, missing[0]), (0, missing[1])), mode="edge")
            tiles = whole.reshape(self._rows, side, self._columns, side).swapaxes(1, 2)
            parts.append(tiles.reshape(self._rows * self._columns, side * side))
        return np.concatenate(parts, axis=1)

    def _sps(self) -> bytes:
        bits = _Bits().put(66, 8).put(0xC0, 8).put(40, 8)  # constrained Baseline, level 4
        bits.put_ue(0, _FRAME_NUMBER_BITS - 4, 2, 1).put(0, 1)  # order as sent, one reference
        bits.put_ue(self._columns - 1, self._rows - 1).put(0b11, 2)  # frames, direct inference
        right, bottom = self._columns * MACROBLOCK - self.width, self._rows * MACROBLOCK - self.height
        bits.put(1, 1).put_ue(0, right // 2, 0, bottom // 2)
        return bits.put(0, 1).end()

    def _idr(self, blocks: Samples) -> bytes:
        bits = _Bits().put_ue(0, 7, 0).put(0, _FRAME_NUMBER_BITS).put_ue(self._idr_number)
        bits.put(0, 2).put_ue(0, 1)  # no long-term reference; no change of quantizer; no deblocking
        pieces = []
        for block in blocks:
            pieces += [bits.put_ue(_I_PCM).aligned(), block.tobytes()]
        return b"".join([*pieces, bits.end()])

    def _predicted(self, blocks: Samples, changed: list[bool]) -> bytes:
        bits = _Bits().put_ue(0, 5, 0).put(self._number % (1 << _FRAME_NUMBER_BITS), _FRAME_NUMBER_BITS)
        bits.put(0, 3).put_ue(0, 1)  # references as usual; no change of quantizer; no deblocking
        pieces, skipped = [], 0
        for block, is_changed in zip(blocks, changed, strict=True):
            if not is_changed:
                skipped += 1
                continue
            pieces += [bits.put_ue(skipped, _I_PCM_IN_P).aligned(), block.tobytes()]
            skipped = 0
        if skipped:
            bits.put_ue(skipped)
        return b"".join([*pieces, bits.end()])


def _pps() -> bytes:
    bits = _Bits().put_ue(0, 0).put(0, 2).put_ue(0, 0, 0).put(0, 3)  # CAVLC, one group, one reference, no weights
    return bits.put_ue(0, 0, 0).put(0b100, 3).end()  # quantizers; deblocking is chosen by slices


def _unit(kind: int, payload: bytes) -> bytes:
    return _START + bytes([kind]) + _LOOKALIKE.sub(b"\0\0\3", payload)
