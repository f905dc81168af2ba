# SPDX-License-Identifier: Apache-2.0
"""Work of the child process on pictures: from a request's data and other arguments to facts and results."""

from collections.abc import Callable, Mapping
from typing import Any

from drone_bridge.vision.h264 import H264Decoder
from drone_bridge.vision.jpegs import Pixels, jpeg_of_rgb

Facts = dict[str, Any]
Results = tuple[Facts, list[bytes]]
Work = Callable[[bytes, Mapping[str, Any]], Results]
#: Its pictures need others.
H264 = H264Decoder()


def picture(pixels: Pixels, request: Mapping[str, Any]) -> Results:
    """Return the size of a decoded picture, its pixels as rgb8, and if `jpeg` is a quality, the JPEG.

    Without a JPEG, the fact `jpeg_problem` has the text of its ImageError.
    """
    height, width, _ = pixels.shape
    facts: Facts = {"width": width, "height": height}
    results = [pixels.tobytes()]
    if quality := request.get("jpeg"):
        try:
            results.append(jpeg_of_rgb(pixels, quality))
        except ValueError as error:
            facts["jpeg_problem"] = str(error)
    return facts, results


def decode_h264(packet: bytes, request: Mapping[str, Any]) -> Results:
    """Decode a picture of the stream `stream`; return it if `is_shown`, else nothing. Raises ImageError."""
    pixels = H264.decode(packet, request["stream"], is_shown=request["is_shown"])
    return ({}, []) if pixels is None else picture(pixels, request)
