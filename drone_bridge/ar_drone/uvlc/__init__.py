# SPDX-License-Identifier: Apache-2.0
"""Codec of the AR.Drone's video: converts a UDP datagram in the format UVLC to a picture, and back. numpy only.

Theory of operation, by Parrot's developer guide and, for its gaps, by the maker's decoder:

- **Transport**: the GUI forwards each packet of its drone unchanged to UDP port 5562 of its controllers. One datagram
is one complete picture without a header. Datagrams are independent of each other.
- **Compression**: as in JPEG, an 8 x 8 cosine transform of Y, Cb and Cr (4:2:0, full range), divided by a factor that
increases with the frequency, and variable-length codes of runs. No block is predicted from another.
- **Size**: 320 x 240 for the front camera, 176 x 144 for the downward camera. The size changes within a stream when the
cameras are switched. Other sizes of the format are refused, which limits the cost of a packet.
- **Codecs**: a drone sends UVLC if its setting `video:video_codec` is 32, and P264, which is refused, if it is 64.
- **Refusal**: a packet that can't be decoded completely is refused as a whole, with the reason.

Bit order: a packet is a sequence of little-endian 32-bit words, each read from its most significant bit.
Numbers are unsigned, most significant bit first. "Aligned" is to 8 bits in this order.

Picture:

| part | bits | value |
|---|---|---|
| head, aligned | 22 | start code 0x20 (0x40 in P264) |
| | 2 | family of sizes: 1 CIF (88 x 72), 2 VGA (160 x 120) |
| | 3 | resolution 1 to 5: that size, doubled (resolution - 1) times |
| | 3 | type: 0 INTRA; 1 INTER is refused, because it needs another picture |
| | 5 | quantizer of row 0: 1 (finest) to 30; 31, which the drone sends, means 2 |
| | 32 | number of the picture |
| row 0 | | width / 16 macroblocks |
| further row k, aligned | 22 | 0x20 + k |
| | 5 | quantizer of this row |
| | | width / 16 macroblocks |
| end, aligned | 22 | 0x3F |
| | | zero bits to the end of the word; later bytes are ignored |

Up to three zero bytes are skipped before an aligned start code. Codes are not protected against start codes in the
middle of a row, so rows are read in sequence, without searching.

Macroblock of 16 x 16 pixels:

| bits | value |
|---|---|
| 1 | 1: not coded. All coefficients are 0, and nothing follows |
| 1 | always 1 |
| 1 | 1: the quantizer changes here, which is refused, because the maker's decoder misreads it |
| 6 | blocks that have codes besides the DC: Cr, Cb, Y3, Y2, Y1, Y0 |
| | blocks Y0 (upper left), Y1 (upper right), Y2 (lower left), Y3 (lower right), Cb, Cr |

Block of 8 x 8 samples: the DC's level in 10 bits, then pairs of (run of zeros, level) along the zigzag from the DC on,
until a pair whose level is the end of the block:

| run | code | level | code (s: 1 if negative) |
|---|---|---|---|
| 0 | `1` | 1 | `1 s` |
| 1 | `01` | end of the block | `01` |
| 2 to 3 | `001 x` | 2 to 3 | `001 x s` |
| 4 to 7 | `0001 xx` | 4 to 7 | `0001 xx s` |
| 8 to 15 | `00001 xxx` | 8 to 15 | `00001 xxx s` |
| 16 to 31 | `000001 xxxx` | 16 to 31 | `000001 xxxx s` |
| 32 to 63 | `0000001 xxxxx` | 32 to 63 | `0000001 xxxxx s` |
| | | 64 to 127 | `00000001 xxxxxx s` |
| | | 128 to 1023 | likewise, in 17, 19 and 21 bits: decoded, never written |

Samples: a coefficient is its level times 1 + (1 + row + column) * quantizer. The inverse transform uses integers, so
pictures are identical with those of the maker's decoder. Colours follow BT.601, with four pixels per chroma sample.
"""

from drone_bridge.ar_drone.uvlc.check import check
from drone_bridge.ar_drone.uvlc.decoder import decode
from drone_bridge.ar_drone.uvlc.encoder import encode
from drone_bridge.ar_drone.uvlc.layout import MAX_PACKET_BYTES, SIZES
from drone_bridge.ar_drone.uvlc.picture import UvlcPicture

__all__ = ["MAX_PACKET_BYTES", "SIZES", "UvlcPicture", "check", "decode", "encode"]
