# SPDX-License-Identifier: Apache-2.0
"""Work of the pictures' child process on the video of an AR.Drone 1: decodes, checks and encodes packets."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from drone_bridge.ar_drone import uvlc
from drone_bridge.ar_drone.cameras import FRONT
from drone_bridge.pictures.codec_process import MAX_DATA_BYTES
from drone_bridge.pictures.work import Results, picture
from drone_bridge.vision.image_error import ImageError
from drone_bridge.vision.jpegs import Pixels, bgr_of_jpeg, opencv
from drone_bridge.vision.raw_images import rgb_of_raw
from drone_bridge.wire import jpeg


def decode(packet: bytes, request: Mapping[str, Any]) -> Results:
    """Decode a picture; see `picture`. Raises RemoteProtocolError."""
    decoded = uvlc.decode(packet)
    pixels = np.frombuffer(decoded.rgb8, np.uint8).reshape(decoded.height, decoded.width, 3)
    return picture(pixels, request)


def check(packet: bytes, _: Mapping[str, Any]) -> Results:
    """Check that a packet may be sent to programs. Raises RemoteProtocolError."""
    uvlc.check(packet)
    return {}, []


def encode(data: bytes, request: Mapping[str, Any]) -> Results:
    """Encode a raw image with `encoding`, `width`, `height`, `step`; `number` counts packets.

    Raises ImageError.
    """
    pixels = rgb_of_raw(data, *(request[name] for name in ("encoding", "width", "height", "step")))
    return {}, [uvlc.encode(in_front_size(pixels), number=request["number"])]


def encode_jpeg(data: bytes, request: Mapping[str, Any]) -> Results:
    """Encode a JPEG as a packet. Raises ImageError."""
    width, height = jpeg.read_size(data)
    if 3 * width * height > MAX_DATA_BYTES:
        raise ImageError(f"has {width} x {height} pixels (limit {MAX_DATA_BYTES // 3})")
    return {}, [uvlc.encode(in_front_size(bgr_of_jpeg(data)[..., ::-1]), number=request["number"])]


def in_front_size(pixels: Pixels) -> Pixels:
    """Scale an image to the size of the front camera, with black bars if its aspect ratio differs.

    Raises ImageError for another size without OpenCV.
    """
    height, width, _ = pixels.shape
    if (width, height) == (FRONT.width, FRONT.height):
        return np.ascontiguousarray(pixels)
    scale = min(FRONT.width / width, FRONT.height / height)
    rows, columns = (max(1, round(scale * size)) for size in (height, width))
    fitted = np.zeros((FRONT.height, FRONT.width, 3), np.uint8)
    top, left = (FRONT.height - rows) // 2, (FRONT.width - columns) // 2
    cv2 = opencv()
    scaled = cv2.resize(np.ascontiguousarray(pixels), (columns, rows), interpolation=cv2.INTER_AREA)
    fitted[top : top + rows, left : left + columns] = scaled
    return fitted
