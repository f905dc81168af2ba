# SPDX-License-Identifier: Apache-2.0
"""Camera images as they go into an HTML page."""

import base64
from typing import Any

import numpy as np

from drone_bridge.tools.reporting.story import Picture

_JPEG_QUALITY = 80
#: What OpenCV calls the way from an encoding to its own blue, green, red; None: it is that already.
_TO_BGR = {
    "rgb8": "COLOR_RGB2BGR",
    "bgr8": None,
    "rgba8": "COLOR_RGBA2BGR",
    "bgra8": "COLOR_BGRA2BGR",
    "mono8": "COLOR_GRAY2BGR",
}


def data_uri(picture: Picture) -> str | None:
    """Return an image as text for `src`; None for one that can't be shown. Compressed ones stay as they are."""
    if picture.type_name == "sensor_msgs/msg/CompressedImage":
        kind = "png" if "png" in picture.message.format else "jpeg"
        return _uri(bytes(picture.message.data), kind)
    data = _jpeg(picture.message)
    return _uri(data, "jpeg") if data else None


def _uri(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _jpeg(image: Any) -> bytes | None:
    import cv2

    if image.encoding not in _TO_BGR or not image.height or not image.width:
        return None
    if len(image.data) != image.height * image.step or image.step < image.width:
        return None  # the publisher has put less, or more, into it than it says
    rows = np.asarray(image.data).reshape(image.height, image.step)
    channels = image.step // image.width
    pixels = np.ascontiguousarray(rows[:, : image.width * channels]).reshape(image.height, image.width, channels)
    conversion = _TO_BGR[image.encoding]
    bgr = cv2.cvtColor(pixels, getattr(cv2, conversion)) if conversion else pixels
    worked, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    return encoded.tobytes() if worked else None
