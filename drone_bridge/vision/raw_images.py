# SPDX-License-Identifier: Apache-2.0
"""rgb_of_raw: converts the data of a sensor_msgs/Image to red, green, blue."""

from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.vision.image_error import ImageError

#: Bytes of a pixel, for the supported encodings.
_BYTES_PER_PIXEL = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}


def check_layout(encoding: str, width: int, height: int, step: int, size: int) -> int:
    """Return the bytes of a row without padding.

    Raises ImageError for an unsupported encoding (more than 8 bits per channel, other colour spaces), and if the size
    of the data does not match the image.
    """
    if encoding not in _BYTES_PER_PIXEL:
        known = ", ".join(_BYTES_PER_PIXEL)
        raise ImageError(f"is {encoding!r:.40} but must be one of {known}: image_proc and cv_bridge convert.")
    row = width * _BYTES_PER_PIXEL[encoding]
    if row <= 0 or step < row or size != step * height:
        raise ImageError(f"has {size} bytes, step {step}, and claims to be {width} x {height} pixels.")
    return row


def rgb_of_raw(data: Any, encoding: str, width: int, height: int, step: int) -> npt.NDArray[np.uint8]:
    """Return pixels, height x width x 3, of bytes or another buffer. Raises ValueError as `check_layout` does."""
    row = check_layout(encoding, width, height, step, len(data))
    pixels = np.frombuffer(data, np.uint8).reshape(height, step)[:, :row].reshape(height, width, -1)
    if encoding == "mono8":
        return pixels.repeat(3, axis=2)
    return pixels[:, :, 2::-1] if encoding.startswith("bgr") else pixels[:, :, :3]
