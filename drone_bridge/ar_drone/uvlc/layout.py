# SPDX-License-Identifier: Apache-2.0
"""Start codes, fields and sizes of the AR.Drone's pictures."""

#: Maximum payload of a UDP datagram over IPv4, bytes.
MAX_PACKET_BYTES = 65507
WORD_BYTES = 4

START_BITS = 22
#: Start code of the picture and its row 0. The code of row k is higher by k.
START = 0x20
END = 0x3F
P264_START = 0x40

#: Fields of a picture's head, with their number of bits.
HEAD = {"start": START_BITS, "family": 2, "resolution": 3, "type": 3, "quantizer": 5, "number": 32}
HEAD_BITS = sum(HEAD.values())
QUANTIZER_BITS = HEAD["quantizer"]
#: Pixels at resolution 1, by family.
SMALLEST = {1: (88, 72), 2: (160, 120)}
MAX_RESOLUTION = 5
INTRA = 0

#: Supported (width, height) in pixels -> (family, resolution).
SIZES = {(320, 240): (2, 2), (176, 144): (1, 2)}
MACROBLOCK_PIXELS = 16
BLOCKS = 6  # per macroblock: Y0, Y1, Y2, Y3, Cb, Cr
COEFFICIENTS = 64  # per block

MACROBLOCK_HEAD_BITS = 9
NOT_CODED = 1 << 8
ALWAYS = 1 << 7
CHANGES_QUANTIZER = 1 << 6

DC_BITS = 10
MAX_DC = 2**DC_BITS - 1
MAX_QUANTIZER = 30
#: Quantizer that the drone sends, and its meaning.
TABLE_MODE = 31
TABLE_MODE_QUANTIZER = 2


def size(family: int, resolution: int) -> tuple[int, int] | None:
    """Return width and height in pixels, or None if the format has no such size."""
    if family not in SMALLEST or not 1 <= resolution <= MAX_RESOLUTION:
        return None
    width, height = SMALLEST[family]
    return width << resolution - 1, height << resolution - 1
