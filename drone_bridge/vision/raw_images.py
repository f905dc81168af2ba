# SPDX-License-Identifier: Apache-2.0
"""rgb_of_raw: the data of a raw image, as sensor_msgs/Image has it, to red, green, blue."""

from typing import Any

import numpy as np
import numpy.typing as npt

#: Where red, green and blue are in a pixel of the encodings that take no more than picking bytes.
_RGB_IN = {"rgb8": (0, 1, 2), "bgr8": (2, 1, 0), "rgba8": (0, 1, 2), "bgra8": (2, 1, 0), "mono8": (0, 0, 0)}
_BYTES_PER_PIXEL = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}


def check_layout(encoding: str, width: int, height: int, step: int, size: int) -> int:
    """Return the bytes of a row without its gap.

    Raises ValueError, with half a sentence, for an encoding of more than 8 bits a channel, of colours in other terms,
    and for an image whose size and data do not fit each other.
    """
    if encoding not in _RGB_IN:
        known = ", ".join(_RGB_IN)
        raise ValueError(f"is {encoding!r:.40}, and has to be one of {known}: image_proc and cv_bridge convert.")
    row = width * _BYTES_PER_PIXEL[encoding]
    if not row or step < row or size != step * height:
        raise ValueError(f"has {size} bytes, step {step}, and claims to be {width} x {height} pixels.")
    return row


def rgb_of_raw(data: Any, encoding: str, width: int, height: int, step: int) -> npt.NDArray[np.uint8]:
    """Return height x width x 3 of data with a buffer. Raises ValueError as `check_layout` does."""
    row = check_layout(encoding, width, height, step, len(data))
    rows = np.frombuffer(data, np.uint8).reshape(height, step)[:, :row]
    return rows.reshape(height, width, -1)[:, :, _RGB_IN[encoding]]
