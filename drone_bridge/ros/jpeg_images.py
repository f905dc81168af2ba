# SPDX-License-Identifier: Apache-2.0
"""JpegDecoder and JpegEncoder: JPEGs as raw images and raw images as JPEGs, by OpenCV where that is installed.

Each reuses its memory or message, and is for one thread.
"""

import contextlib
import importlib
from array import array
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CompressedImage, Image

from drone_bridge.ros.images import RGB8_BYTES_PER_PIXEL, ImageBytes, Rgb8Image, set_data
from drone_bridge.wire import jpeg


def opencv() -> Any:
    """Return OpenCV. Raises ValueError with half a sentence if it is not installed."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise ValueError(
            f"needs OpenCV, which can't be imported ({error}): install python3-opencv, or opencv-python-headless by pip"
        ) from error


def load_opencv() -> None:
    """Import OpenCV, if it is installed. For nodes that offer images, while they are configured.

    On a slow disk the import takes seconds, with Python's lock: no thread of a node that is active would run meanwhile.
    """
    with contextlib.suppress(ValueError):  # which the first image says
        opencv()


_SCAN = b"\xff\xda"
_END = b"\xff\xd9"
#: A progressive JPEG has ten scans. Each costs as much time as all pixels and next to no bytes.
MAX_SCANS = 16


class JpegDecoder:
    """Decodes JPEGs into an rgb8 message, reusing its memory."""

    def __init__(self, frame_id: str) -> None:
        """Prepare, which may take long; to be called while a node is configured."""
        load_opencv()
        self._frame_id = frame_id
        self._size = (0, 0)  # width and height of the last one, pixels
        self._image: Rgb8Image
        self._pixels: array[int]

    def image(self, data: bytes, stamp: Time) -> Image:
        """Return the message, which is valid until the next call.

        `data` has to be of a size that is known to be allowed. Raises ValueError with half a sentence about what is no
        JPEG, or one that can't be decoded.
        """
        cv2 = opencv()
        # Without what cameras note about how they were held: height and width are to be those of the header.
        flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
        width, height = jpeg.read_size(data)
        if (scans := data.count(_SCAN)) > MAX_SCANS:
            raise ValueError(f"has {scans} scans, and {MAX_SCANS} are allowed")
        if data.rfind(_END) < data.rfind(_SCAN):  # older OpenCV paints what is missing grey
            raise ValueError("is cut short before its end")
        pixels: Any = None  # whatever the stubs say
        try:
            pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
            if pixels is None or pixels.shape != (height, width, RGB8_BYTES_PER_PIXEL):
                raise ValueError("can't be decoded")
            if (width, height) != self._size:
                self._size, self._image = (width, height), Rgb8Image(width, height, self._frame_id)
                self._pixels = array("B", bytes(pixels.size))
            # Older OpenCV does not take memory of ours for an image that is one pixel wide.
            cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB, dst=np.frombuffer(self._pixels, np.uint8).reshape(pixels.shape))
        except cv2.error as error:
            raise ValueError(f"can't be decoded: {error.err}") from error
        return self._image.filled(self._pixels, stamp)


_TO_BGR = {"rgb8": "COLOR_RGB2BGR", "bgr8": None, "mono8": None}


def encoded(message: Image, max_width: int, quality: int) -> bytes:
    """Return a raw image as a JPEG, scaled down if it is too wide.

    Raises ValueError with half a sentence about an image that can't be encoded.
    """
    if message.encoding not in _TO_BGR:
        raise ValueError(f"has the encoding {message.encoding!r}, and {', '.join(_TO_BGR)} can be encoded")
    channels = 1 if message.encoding == "mono8" else RGB8_BYTES_PER_PIXEL
    row = message.width * channels
    data = np.frombuffer(message.data, np.uint8)
    if not message.width or not message.height or message.step < row or data.size != message.step * message.height:
        raise ValueError(f"has {data.size} bytes, and not {message.height} rows of {message.step}")
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
        raise ValueError(f"can't be encoded: {error.err}") from error
    if not is_done:
        raise ValueError("can't be encoded")
    return bytes(jpeg_data)


#: What image_transport calls a JPEG of an rgb8 image.
_RGB8_AS_JPEG = "rgb8; jpeg compressed bgr8"


class JpegEncoder:
    """Encodes rgb8 pixels of one size into a CompressedImage, always the same message."""

    def __init__(self, width: int, height: int, frame_id: str, quality: int) -> None:
        """`quality` is the JPEG quality, 1 to 100."""
        self._shape = (height, width, RGB8_BYTES_PER_PIXEL)
        self._quality = quality
        self._message = CompressedImage(format=_RGB8_AS_JPEG)
        self._message.header.frame_id = frame_id

    def image(self, pixels: ImageBytes, stamp: Time) -> CompressedImage:
        """Return the message, which is valid until the next call. Raises ValueError with half a sentence."""
        cv2 = opencv()
        turned = cv2.cvtColor(np.frombuffer(pixels, np.uint8).reshape(self._shape), cv2.COLOR_RGB2BGR)
        is_done, data = cv2.imencode(".jpg", turned, [cv2.IMWRITE_JPEG_QUALITY, self._quality])
        if not is_done:
            raise ValueError(f"can't be made a JPEG: OpenCV refuses {self._shape[1]} x {self._shape[0]} pixels")
        self._message.header.stamp = stamp
        set_data(self._message, data.tobytes())
        return self._message
