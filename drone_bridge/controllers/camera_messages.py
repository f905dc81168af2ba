# SPDX-License-Identifier: Apache-2.0
"""Parsing and validation of images and camera infos."""

from __future__ import annotations

import math

import numpy as np
from cv_bridge import CvBridge
from sensor_msgs.msg import CameraInfo
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.vision.pinhole import Image, Pinhole

_IMAGES = CvBridge()


def read_pinhole(info: CameraInfo, topic: str) -> Pinhole:
    """Return the camera of a CameraInfo. Raises ValueError with a sentence if it is invalid."""
    if not (info.width and info.height):
        raise ValueError(f"{topic} has {info.width} x {info.height} pixels: both must be at least 1.")
    pinhole = Pinhole(info.width, info.height, fx=info.k[0], fy=info.k[4], cx=info.k[2], cy=info.k[5])
    for name, value in (("fx", pinhole.fx), ("fy", pinhole.fy)):
        if not 0 < value < math.inf:
            raise ValueError(f"in {topic}, {name} is {value} but must be a finite number above 0.")
    for name, value, size in (("cx", pinhole.cx, info.width), ("cy", pinhole.cy, info.height)):
        if not -0.5 <= value <= size - 0.5:
            raise ValueError(f"in {topic}, {name} is {value}, outside the {size} pixels of the image.")
    return pinhole


def read_pixels(image: ImageMessage, topic: str, pinhole: Pinhole, info_topic: str) -> Image:
    """Return the pixels of a camera's image, height x width x 3 (red, green, blue).

    Raises ValueError with a sentence if its size differs from the camera's, or its data do not match its layout.
    """
    if (image.width, image.height) != (pinhole.width, pinhole.height):
        raise ValueError(
            f"{topic} has {image.width} x {image.height} pixels, but {info_topic} has "
            f"{pinhole.width} x {pinhole.height}."
        )
    try:
        dtype, channels = _IMAGES.encoding_to_dtype_with_channels(image.encoding)
        row_bytes = image.width * channels * np.dtype(dtype).itemsize
        if (image.step, len(image.data)) != (row_bytes, row_bytes * image.height):
            raise ValueError(
                f"{topic} has {len(image.data)} bytes, {image.step} per row, but {image.width} x {image.height} pixels "
                f"of {image.encoding} need {row_bytes * image.height}, {row_bytes} per row."
            )
        pixels: Image = _IMAGES.imgmsg_to_cv2(image, "rgb8")
    except ValueError:
        raise
    except Exception as error:
        # KeyError, RuntimeError and others, depending on the encoding and the version of cv_bridge.
        encoding = f"{image.encoding!r}, {'big' if image.is_bigendian else 'little'}-endian"
        raise ValueError(f"{topic} is encoded as {encoding}, which cv_bridge can't convert to rgb8.") from error
    return pixels
