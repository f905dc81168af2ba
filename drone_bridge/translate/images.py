# SPDX-License-Identifier: Apache-2.0
"""Image messages around memory that a socket has been read into."""

from array import array
from collections.abc import Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Final

import numpy as np
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

if TYPE_CHECKING:
    from drone_bridge.protocols.testbed import ImageBytes

RGB8_BYTES_PER_PIXEL: Final = 3


class ImageMemory:
    """Image buffers, used in turn, so that no frame waits for fresh memory pages.

    `publish()` has finished with an array when it returns, so an array is free again `turns` images later.
    """

    def __init__(self, turns: int) -> None:
        """`turns` is the number of buffers."""
        self._turns = turns
        self._size = 0  # of each
        self._lent: Iterator[array[int]] = iter(())

    def lend(self, size: int) -> "array[int]":
        """Return a buffer of `size` bytes, valid until `turns` more have been lent."""
        if size != self._size:
            self._size, self._lent = size, cycle([array("B", bytes(size)) for _ in range(self._turns)])
        return next(self._lent)

    def give_back(self) -> None:
        """Release all buffers."""
        self._size, self._lent = 0, iter(())


def rgb8_image(width: int, height: int, frame_id: str) -> Image:
    """Return an rgb8 message without pixels, for `set_pixels`."""
    image = Image(height=height, width=width, encoding="rgb8", is_bigendian=0, step=width * RGB8_BYTES_PER_PIXEL)
    image.header.frame_id = frame_id
    return image


def set_pixels(image: Image, pixels: "ImageBytes") -> None:
    """Make `pixels`, step * height bytes, the data of the message; without a copy if it is an array('B')."""
    if image.step * image.height != len(pixels):
        raise ValueError(f"{len(pixels)} bytes are not an image of {image.height} rows of {image.step} bytes.")
    set_data(image, pixels)


def set_data(image: Image | CompressedImage, data: "ImageBytes") -> None:
    """Make the bytes the data of the message as they are; without a copy if they are an array('B')."""
    # The property checks every element on some distributions and copies the array on others; the slot does neither.
    image._data = data if isinstance(data, array) else array("B", data)


#: Where red, green and blue are in a pixel of the encodings that take no more than picking bytes.
_RGB_IN: Final = {"rgb8": (0, 1, 2), "bgr8": (2, 1, 0), "rgba8": (0, 1, 2), "bgra8": (2, 1, 0), "mono8": (0, 0, 0)}
_BYTES_PER_PIXEL: Final = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}


def rgb8_pixels(image: Image) -> "ImageBytes":
    """Return the pixels without gaps as red, green, blue: the very bytes of an rgb8 image whose rows have none.

    Raises ValueError, with a sentence, for an encoding of more than 8 bits a channel, of colours in other terms, and
    for an image whose size and data do not fit each other.
    """
    if image.encoding not in _RGB_IN:
        known = ", ".join(_RGB_IN)
        raise ValueError(f"is {image.encoding!r:.40}, and has to be one of {known}: image_proc and cv_bridge convert.")
    row = image.width * _BYTES_PER_PIXEL[image.encoding]
    if not row or image.step < row or len(image.data) != image.step * image.height:
        raise ValueError(
            f"has {len(image.data)} bytes, step {image.step}, and says to be {image.width} x {image.height} pixels."
        )
    if image.encoding == "rgb8" and image.step == row:
        return image.data  # type: ignore[no-any-return]
    rows = np.frombuffer(image.data, np.uint8).reshape(image.height, image.step)[:, :row]
    pixels = rows.reshape(image.height, image.width, -1)[:, :, _RGB_IN[image.encoding]]
    return pixels.tobytes()


def pinhole_camera_info(
    width: int, height: int, *, focal_x: float, focal_y: float, frame_id: str, baseline: float = 0.0
) -> CameraInfo:
    """Return the CameraInfo of an ideal pinhole whose axis meets the image's centre.

    Args:
        width: pixels.
        height: pixels.
        focal_x: horizontal focal length, pixels.
        focal_y: vertical focal length, pixels.
        frame_id: the optical frame.
        baseline: m by which this camera stands to the right of the one that a stereo pair is referred to.
    """
    # ROS counts pixels from the centre of the first one, so the centre of the image is half a pixel before size / 2.
    centre_x, centre_y = (width - 1) / 2, (height - 1) / 2
    info = CameraInfo(height=height, width=width, distortion_model="plumb_bob", d=[0.0] * 5)
    info.header.frame_id = frame_id
    info.k = [focal_x, 0.0, centre_x, 0.0, focal_y, centre_y, 0.0, 0.0, 1.0]
    info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    # 0.0 - x, and not -x, which makes -0.0 of zero.
    info.p = [focal_x, 0.0, centre_x, 0.0 - focal_x * baseline, 0.0, focal_y, centre_y, 0.0, 0.0, 0.0, 1.0, 0.0]
    return info
