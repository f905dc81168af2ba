# SPDX-License-Identifier: Apache-2.0
"""JpegDecoder and JpegEncoder: conversion between JPEGs and raw images, by OpenCV if it is installed.

Each reuses its memory or message, and is for one thread.
"""

from array import array
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CompressedImage, Image

from drone_bridge.ros.topics.images import RGB8_BYTES_PER_PIXEL, ImageBytes, Rgb8Image, set_data
from drone_bridge.vision.image_error import ImageError
from drone_bridge.vision.jpegs import bgr_of_jpeg, jpeg_of_rgb, load_opencv, opencv


class JpegDecoder:
    """Decoder of JPEGs into a reused rgb8 message."""

    def __init__(self, frame_id: str) -> None:
        """Load OpenCV, which may be slow: call this while a node is configured."""
        load_opencv()
        self._frame_id = frame_id
        self._size = (0, 0)  # width and height of the last image, pixels
        self._image: Rgb8Image
        self._pixels: array[int]

    def image(self, data: bytes, stamp: Time) -> Image:
        """Decode into the message, which is valid until the next call.

        The caller has to check the image's size before. Raises ImageError for data that is no JPEG.
        """
        cv2, pixels = opencv(), bgr_of_jpeg(data)
        height, width, _ = pixels.shape
        if (width, height) != self._size:
            self._size, self._image = (width, height), Rgb8Image(width, height, self._frame_id)
            self._pixels = array("B", bytes(pixels.size))
        # For an image one pixel wide, older OpenCV does not use our memory.
        cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB, dst=np.frombuffer(self._pixels, np.uint8).reshape(pixels.shape))
        return self._image.filled(self._pixels, stamp)


_TO_BGR = {"rgb8": "COLOR_RGB2BGR", "bgr8": None, "mono8": None}


def encoded(message: Image, max_width: int, quality: int) -> bytes:
    """Encode a raw image as a JPEG, scaled down to `max_width`.

    Raises ImageError for an image that can't be encoded.
    """
    if message.encoding not in _TO_BGR:
        raise ImageError(f"has the encoding {message.encoding!r}, and {', '.join(_TO_BGR)} can be encoded")
    channels = 1 if message.encoding == "mono8" else RGB8_BYTES_PER_PIXEL
    row = message.width * channels
    data = np.frombuffer(message.data, np.uint8)
    if not message.width or not message.height or message.step < row or data.size != message.step * message.height:
        raise ImageError(f"has {data.size} bytes, and not {message.height} rows of {message.step}")
    pixels: Any = data.reshape(message.height, message.step)[:, :row].reshape(message.height, message.width, channels)
    cv2 = opencv()
    try:
        if message.width > max_width:
            height = max(1, round(message.height * max_width / message.width))
            pixels = cv2.resize(pixels, (max_width, height), interpolation=cv2.INTER_AREA)
        if conversion := _TO_BGR[message.encoding]:
            pixels = cv2.cvtColor(pixels, getattr(cv2, conversion))
        is_done, jpeg_data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
    except cv2.error as error:
        raise ImageError(f"can't be encoded: {error.err}") from error
    if not is_done:
        raise ImageError("can't be encoded")
    return bytes(jpeg_data)


#: Format of a JPEG of an rgb8 image, as in image_transport.
RGB8_AS_JPEG = "rgb8; jpeg compressed bgr8"


class JpegEncoder:
    """Encoder of rgb8 pixels of one size into a reused CompressedImage."""

    def __init__(self, width: int, height: int, frame_id: str, quality: int) -> None:
        """`quality` is the JPEG quality, 1 to 100."""
        self._shape = (height, width, RGB8_BYTES_PER_PIXEL)
        self._quality = quality
        self._message = CompressedImage(format=RGB8_AS_JPEG)
        self._message.header.frame_id = frame_id

    def image(self, pixels: ImageBytes, stamp: Time) -> CompressedImage:
        """Encode into the message, which is valid until the next call. Raises ImageError."""
        data = jpeg_of_rgb(np.frombuffer(pixels, np.uint8).reshape(self._shape), self._quality)
        self._message.header.stamp = stamp
        set_data(self._message, data)
        return self._message
