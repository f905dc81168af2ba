# SPDX-License-Identifier: Apache-2.0
"""JPEG decoding and encoding by OpenCV, an optional package that is imported on first use or by `load_opencv`."""

import contextlib
import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.vision.image_error import ImageError
from drone_bridge.wire import jpeg

Pixels = npt.NDArray[np.uint8]  # height x width x 3

#: Packages that have OpenCV.
OPENCV_PACKAGES = "python3-opencv, or opencv-python-headless by pip"

_SCAN = b"\xff\xda"
_END = b"\xff\xd9"
#: A progressive JPEG has ten scans. Each takes the time of decoding all pixels, but hardly any bytes.
MAX_SCANS = 16
_CHANNELS = 3


def opencv() -> Any:
    """Return OpenCV. Raises ImageError if it is not installed."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise ImageError(f"needs OpenCV, which can't be imported ({error}): install {OPENCV_PACKAGES}") from error


def load_opencv() -> None:
    """Import OpenCV if installed. Nodes with images call this while they are configured.

    On a slow disk, the import holds Python's global lock for seconds. It would suspend all threads of an active node.
    """
    with contextlib.suppress(ValueError):  # reported at the first image
        opencv()


def bgr_of_jpeg(data: bytes) -> Pixels:
    """Return the pixels as blue, green, red.

    The caller has to check the size of the image first. Raises ImageError if `data` is no JPEG or can't be decoded.
    """
    cv2 = opencv()
    # The orientation noted by a camera is ignored, so that height and width are those of the header.
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    width, height = jpeg.read_size(data)
    if (scans := data.count(_SCAN)) > MAX_SCANS:
        raise ImageError(f"has {scans} scans, and {MAX_SCANS} are allowed")
    if data.rfind(_END) < data.rfind(_SCAN):  # older OpenCV fills missing pixels with grey
        raise ImageError("is truncated")
    try:
        pixels: Any = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        raise ImageError(f"can't be decoded: {error.err}") from error
    if pixels is None or pixels.shape != (height, width, _CHANNELS):
        raise ImageError("can't be decoded")
    decoded: Pixels = pixels
    return decoded


def jpeg_of_rgb(pixels: Pixels, quality: int) -> bytes:
    """Encode red, green, blue as a JPEG. Raises ImageError.

    `quality` is the JPEG quality, 1 to 100.
    """
    cv2 = opencv()
    is_done, data = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not is_done:
        raise ImageError(f"can't be encoded as a JPEG: OpenCV refuses {pixels.shape[1]} x {pixels.shape[0]} pixels")
    return bytes(data)
