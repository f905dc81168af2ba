# SPDX-License-Identifier: Apache-2.0
"""Check of a packet before it is sent to programs that use the maker's decoder, which checks nothing.

Packets for which that decoder would access memory out of bounds are refused, although `decode` accepts some of them.
"""

import numpy as np

from drone_bridge.ar_drone.uvlc.bits import in_order
from drone_bridge.ar_drone.uvlc.head import Head
from drone_bridge.ar_drone.uvlc.layout import BLOCKS, DC_BITS, MACROBLOCK_PIXELS, MAX_PACKET_BYTES, WORD_BYTES
from drone_bridge.ar_drone.uvlc.reader import RowReader
from drone_bridge.wire.events import RemoteProtocolError


def check(packet: bytes) -> Head:
    """Return the head of a packet that any decoder can read safely.

    Raises:
        RemoteProtocolError: `decode` would refuse it, its rows are not aligned to 8 bits, it has macroblocks that are
            not coded, a DC of 0, or data after its picture.
    """
    if len(packet) > MAX_PACKET_BYTES:
        raise RemoteProtocolError(f"A video packet has {len(packet)} bytes (limit {MAX_PACKET_BYTES}).")
    ordered = in_order(packet)
    head = Head.read(ordered)
    rows, columns = head.height // MACROBLOCK_PIXELS, head.width // MACROBLOCK_PIXELS
    count = rows * columns * BLOCKS
    reader = RowReader(ordered)
    levels = reader.read(rows, columns, head.quantizer)
    if reader.skipped_bytes:
        raise RemoteProtocolError(f"A picture has {reader.skipped_bytes} bytes between its rows.")
    if len(levels.coded) < count:
        missing = (count - len(levels.coded)) // BLOCKS
        raise RemoteProtocolError(f"A picture has {missing} macroblocks that are not coded.")
    if not (levels.windows.take(np.array(levels.dc_positions)) >> np.uint32(32 - DC_BITS)).all():
        raise RemoteProtocolError("A picture has a block whose DC is 0; 1 to 1023 are allowed.")
    levels.coefficients(count)
    words = -(-reader.position // (8 * WORD_BYTES))
    if (
        len(packet) != WORD_BYTES * words
        or int.from_bytes(ordered, "big") & (1 << 8 * len(packet) - reader.position) - 1
    ):
        raise RemoteProtocolError(f"A picture of {WORD_BYTES * words} bytes is followed by other data.")
    return head
