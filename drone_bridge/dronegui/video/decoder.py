# SPDX-License-Identifier: Apache-2.0
"""Decode a packet of the AR.Drone's video."""

import numpy as np

from drone_bridge.dronegui.video import blocks, colours
from drone_bridge.dronegui.video.bits import in_order
from drone_bridge.dronegui.video.head import Head
from drone_bridge.dronegui.video.layout import BLOCKS, MACROBLOCK_PIXELS, MAX_PACKET_BYTES
from drone_bridge.dronegui.video.picture import Picture
from drone_bridge.dronegui.video.reader import Reader
from drone_bridge.dronegui.video.transform import samples_of
from drone_bridge.wire.events import RemoteProtocolError

#: Samples beyond are clipped, to be summed up in 16 bits. No encoder's come near.
_MAX_SAMPLE = 2**13 - 1


def decode(packet: bytes) -> Picture:
    """Return the picture of one datagram.

    Raises:
        RemoteProtocolError: it is no whole picture, or not one of the codec and the sizes that are decoded.
    """
    if len(packet) > MAX_PACKET_BYTES:
        raise RemoteProtocolError(f"A video packet has {len(packet)} bytes; {MAX_PACKET_BYTES} are the most.")
    ordered = in_order(packet)
    head = Head.read(ordered)
    rows, columns = head.height // MACROBLOCK_PIXELS, head.width // MACROBLOCK_PIXELS
    levels = Reader(ordered).read(rows, columns, head.quantizer)
    samples = samples_of(levels.coefficients(rows * columns * BLOCKS), rows)
    np.clip(samples, -_MAX_SAMPLE, _MAX_SAMPLE, out=samples)
    planes = blocks.joined(samples.astype(np.int16), rows, columns)
    y, cb, cr = (np.clip(plane, 0, 255).astype(np.uint8).tobytes() for plane in planes)
    return Picture(head.number, head.width, head.height, y, cb, cr, rgb8=colours.rgb_of(*planes).tobytes())
