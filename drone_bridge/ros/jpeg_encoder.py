# SPDX-License-Identifier: Apache-2.0
"""Raw images as JPEGs. OpenCV is imported lazily."""

from typing import Final

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CompressedImage

from drone_bridge.ros.images import RGB8_BYTES_PER_PIXEL, ImageBytes, set_data
from drone_bridge.ros.opencv import opencv

#: What image_transport calls a JPEG of an rgb8 image.
_RGB8_AS_JPEG: Final = "rgb8; jpeg compressed bgr8"


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
