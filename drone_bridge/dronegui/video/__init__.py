# SPDX-License-Identifier: Apache-2.0
"""Codec of the AR.Drone's video: one UDP datagram of its format UVLC to a picture, and back. numpy only.

Theory of operation, by Parrot's developer guide; what it lacks is by what the maker's decoder accepts:

- **Transport**: the GUI forwards each packet of its drone unchanged to UDP port 5562 of its controllers. One datagram
  is one whole picture, without a header of its own, and stands for itself: nothing is kept from one to the next.
- **Compression**: as in JPEG, an 8 x 8 cosine transform of Y, Cb and Cr (4:2:0, full range), divided by a factor that
  rises with the frequency, and run-length codes of variable length. No block is predicted from another.
- **Size**: 320 x 240 is the front camera's, 176 x 144 the one of the downward camera. The size changes within a
  stream when the cameras are switched. Other sizes of the format are refused, which bounds the cost of a packet.
- **Codecs**: a drone sends UVLC if its setting `video:video_codec` is 32, and P264, which is refused, if it is 64.
- **Refusal**: a packet that is not decoded in full is refused as a whole, with the reason.

Order of the bits: a packet is a sequence of little-endian 32-bit words, each read from its most significant bit.
Numbers are unsigned, most significant bit first. "Aligned" is to 8 bits in this order.

Picture:

| part | bits | value |
|---|---|---|
| head, aligned | 22 | start code 0x20 (0x40 in P264) |
| | 2 | family of sizes: 1 CIF (88 x 72), 2 VGA (160 x 120) |
| | 3 | resolution 1 to 5: that size, doubled once less than this number |
| | 3 | type: 0 INTRA; 1 INTER is refused, as it needs another picture |
| | 5 | quantizer of row 0: 1 (finest) to 30; 31, the drone's own, stands for 2 |
| | 32 | number of the picture |
| row 0 | | width / 16 macroblocks |
| further row k, aligned | 22 | 0x20 + k |
| | 5 | quantizer of this row |
| | | width / 16 macroblocks |
| end, aligned | 22 | 0x3F |
| | | zero bits to the end of the word; what follows is ignored |

Up to three zero bytes are skipped ahead of an aligned start code. The codes are not guarded against start codes in the
middle of a row, so rows are read in turn, and none is searched for.

Macroblock of 16 x 16 pixels:

| bits | value |
|---|---|
| 1 | 1: not coded. All its coefficients are 0, and nothing follows |
| 1 | always 1 |
| 1 | 1: the quantizer changes here, which is refused, as the maker's own decoder misreads it |
| 6 | which blocks have codes beside the DC: Cr, Cb, Y3, Y2, Y1, Y0 |
| | blocks Y0 (upper left), Y1 (upper right), Y2 (lower left), Y3 (lower right), Cb, Cr |

Block of 8 x 8 samples: the DC's level in 10 bits, then pairs of (run of zeros, level) along the zigzag from the DC on,
up to a pair whose level is the end of the block:

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

Samples: a coefficient is its level times 1 + (1 + row + column) * quantizer. The inverse transform is in integers, so
that pictures are identical with those of the maker's decoder. Colours follow BT.601, four pixels to a chroma sample.
"""

from drone_bridge.dronegui.video.check import check
from drone_bridge.dronegui.video.decoder import decode
from drone_bridge.dronegui.video.encoder import encode
from drone_bridge.dronegui.video.layout import MAX_PACKET_BYTES, SIZES
from drone_bridge.dronegui.video.picture import Picture

__all__ = ["MAX_PACKET_BYTES", "SIZES", "Picture", "check", "decode", "encode"]
