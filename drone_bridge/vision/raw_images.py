# SPDX-License-Identifier: Apache-2.0
"""rgb_of_raw: converts the data of a sensor_msgs/Image to red, green, blue."""

from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.vision.image_error import ImageError

#: Byte offsets of red, green and blue in a pixel, for the supported encodings.
_RGB_IN = {"rgb8": (0, 1, 2), "bgr8": (2, 1, 0), "rgba8": (0, 1, 2), "bgra8": (2, 1, 0), "mono8": (0, 0, 0)}
_BYTES_PER_PIXEL = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}


def check_layout(encoding: str, width: int, height: int, step: int, size: int) -> int:
    """Return the bytes of a row without padding.

    Raises ImageError for an unsupported encoding (more than 8 bits per channel, other colour spaces), and if the size
    of the data does not match the image.
    """
    if encoding not in _RGB_IN:
        known = ", ".join(_RGB_IN)
        raise ImageError(f"is {encoding!r:.40} but must be one of {known}: image_proc and cv_bridge convert.")
    row = width * _BYTES_PER_PIXEL[encoding]
    if row <= 0 or step < row or size != step * height:
        raise ImageError(f"has {size} bytes, step {step}, and claims to be {width} x {height} pixels.")
    return row


def rgb_of_raw(data: Any, encoding: str, width: int, height: int, step: int) -> npt.NDArray[np.uint8]:
    """Return pixels, height x width x 3, of bytes or another buffer. Raises ValueError as `check_layout` does."""
    row = check_layout(encoding, width, height, step, len(data))
    rows = np.frombuffer(data, np.uint8).reshape(height, step)[:, :row]
    return rows.reshape(height, width, -1)[:, :, _RGB_IN[encoding]]
