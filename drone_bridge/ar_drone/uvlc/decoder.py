# SPDX-License-Identifier: Apache-2.0
"""Decoder of the AR.Drone's video packets."""

import numpy as np

from drone_bridge.ar_drone.uvlc import blocks, colours
from drone_bridge.ar_drone.uvlc.bits import in_order
from drone_bridge.ar_drone.uvlc.head import Head
from drone_bridge.ar_drone.uvlc.layout import BLOCKS, MACROBLOCK_PIXELS, MAX_PACKET_BYTES
from drone_bridge.ar_drone.uvlc.picture import UvlcPicture
from drone_bridge.ar_drone.uvlc.reader import RowReader
from drone_bridge.ar_drone.uvlc.transform import samples_of
from drone_bridge.wire.events import RemoteProtocolError

#: Limit at which samples are clipped, so that sums fit into 16 bits. Real encoders stay far below it.
_MAX_SAMPLE = 2**13 - 1


def decode(packet: bytes) -> UvlcPicture:
    """Return the picture in one datagram.

    Raises:
        RemoteProtocolError: it is not a complete picture, or has another codec or size.
    """
    if len(packet) > MAX_PACKET_BYTES:
        raise RemoteProtocolError(f"A video packet has {len(packet)} bytes (limit {MAX_PACKET_BYTES}).")
    ordered = in_order(packet)
    head = Head.read(ordered)
    rows, columns = head.height // MACROBLOCK_PIXELS, head.width // MACROBLOCK_PIXELS
    levels = RowReader(ordered).read(rows, columns, head.quantizer)
    samples = samples_of(levels.coefficients(rows * columns * BLOCKS), rows)
    np.clip(samples, -_MAX_SAMPLE, _MAX_SAMPLE, out=samples)
    planes = blocks.joined(samples.astype(np.int16), rows, columns)
    y, cb, cr = (np.clip(plane, 0, 255).astype(np.uint8).tobytes() for plane in planes)
    return UvlcPicture(head.number, head.width, head.height, y, cb, cr, rgb8=colours.rgb_of(*planes).tobytes())
