# SPDX-License-Identifier: Apache-2.0
"""Decoded picture of the AR.Drone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UvlcPicture:
    """Picture, rows from the top, without padding.

    Attributes:
        number: the drone's picture counter, 32 bits.
        width: in pixels.
        height: in pixels.
        y: luma, height x width bytes, full range.
        cb: blue chroma, height/2 x width/2 bytes.
        cr: red chroma, height/2 x width/2 bytes.
        rgb8: height x width x 3 bytes, like `data` of a sensor_msgs/Image with this encoding.
    """

    number: int
    width: int
    height: int
    y: bytes
    cb: bytes
    cr: bytes
    rgb8: bytes
