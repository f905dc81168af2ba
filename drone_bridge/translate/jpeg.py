# SPDX-License-Identifier: Apache-2.0
"""JPEGs as raw images, and the other way round. OpenCV is imported by the first image that needs it."""

import importlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CompressedImage, Image

from drone_bridge.protocols.telemetry import jpeg
from drone_bridge.protocols.testbed import ImageBytes
from drone_bridge.translate.images import RGB8_BYTES_PER_PIXEL, ImageMemory, rgb8_image, set_data

Pixels = npt.NDArray[np.uint8]

_SCAN: Final = b"\xff\xda"
_END: Final = b"\xff\xd9"
#: A progressive JPEG has ten scans. Each costs as much time as all pixels and next to no bytes.
MAX_SCANS: Final = 16
#: What image_transport calls a JPEG of an rgb8 image.
_RGB8_AS_JPEG: Final = "rgb8; jpeg compressed bgr8"


def _opencv() -> Any:
    """Return OpenCV. Raises ValueError with half a sentence where there is none."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise ValueError(
            f"needs OpenCV, which can't be imported ({error}): install python3-opencv, or opencv-python-headless by pip"
        ) from error


class JpegEncoder:
    """Makes a CompressedImage of the pixels of an rgb8 image of one size, the same message each time."""

    def __init__(self, width: int, height: int, frame_id: str, quality: int) -> None:
        """`quality` is from 1 to 100, as JPEG has it."""
        self._shape = (height, width, RGB8_BYTES_PER_PIXEL)
        self._quality = quality
        self._message = CompressedImage(format=_RGB8_AS_JPEG)
        self._message.header.frame_id = frame_id

    def image(self, pixels: ImageBytes, stamp: Time) -> CompressedImage:
        """Return the message, which holds until the next call. Raises ValueError with half a sentence."""
        cv2 = _opencv()
        turned = cv2.cvtColor(np.frombuffer(pixels, np.uint8).reshape(self._shape), cv2.COLOR_RGB2BGR)
        is_done, data = cv2.imencode(".jpg", turned, [cv2.IMWRITE_JPEG_QUALITY, self._quality])
        if not is_done:
            raise ValueError(f"can't be made a JPEG: OpenCV refuses {self._shape[1]} x {self._shape[0]} pixels")
        self._message.header.stamp = stamp
        set_data(self._message, data.tobytes())
        return self._message


class JpegDecoder:
    """Makes an rgb8 message of a JPEG, in memory that is used again for the next one."""

    def __init__(self, frame_id: str) -> None:
        self._frame_id = frame_id
        self._memory = ImageMemory(turns=1)
        self._image = Image()

    def image(self, data: bytes, stamp: Time) -> Image:
        """Return the message, which holds until the next call.

        `data` has to be of a size that is known to be allowed. Raises ValueError with half a sentence about what is no
        JPEG, or one that can't be decoded.
        """
        cv2 = _opencv()
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
            memory = self._memory.lend(pixels.size)
            # Older OpenCV does not take memory of ours for an image that is one pixel wide.
            cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB, dst=np.frombuffer(memory, np.uint8).reshape(pixels.shape))
        except cv2.error as error:
            raise ValueError(f"can't be decoded: {error.err}") from error
        if (self._image.width, self._image.height) != (width, height):
            self._image = rgb8_image(width, height, self._frame_id)
        self._image.header.stamp = stamp
        set_data(self._image, memory)
        return self._image
