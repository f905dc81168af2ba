# SPDX-License-Identifier: Apache-2.0
"""JPEGs as raw images. OpenCV is imported lazily."""

from array import array
from typing import Any, Final

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image

from drone_bridge.ros.images import RGB8_BYTES_PER_PIXEL, Rgb8Image
from drone_bridge.ros.opencv import opencv
from drone_bridge.wire import jpeg

_SCAN: Final = b"\xff\xda"
_END: Final = b"\xff\xd9"
#: A progressive JPEG has ten scans. Each costs as much time as all pixels and next to no bytes.
MAX_SCANS: Final = 16


class JpegDecoder:
    """Decodes JPEGs into an rgb8 message, reusing its memory."""

    def __init__(self, frame_id: str) -> None:
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


_TO_BGR: Final = {"rgb8": "COLOR_RGB2BGR", "bgr8": None, "mono8": None}


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
