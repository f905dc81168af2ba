# SPDX-License-Identifier: Apache-2.0
"""Parsing and validation of images and camera infos."""

from __future__ import annotations

import math

from sensor_msgs.msg import CameraInfo
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.vision.image_error import ImageError
from drone_bridge.vision.pinhole import Image, Pinhole
from drone_bridge.vision.raw_images import rgb_of_raw


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
        return rgb_of_raw(image.data, image.encoding, image.width, image.height, image.step)
    except ImageError as error:
        raise ValueError(f"{topic} {error}") from error
