# SPDX-License-Identifier: Apache-2.0
"""Image messages around memory that a socket has been read into."""

from array import array
from typing import TYPE_CHECKING, Final

from sensor_msgs.msg import CameraInfo, CompressedImage, Image

if TYPE_CHECKING:
    from drone_bridge.protocols.testbed import ImageBytes

RGB8_BYTES_PER_PIXEL: Final = 3


class ImageMemory:
    """Arrays for image bytes, lent in turn, so that no frame pays for fresh pages.

    `publish()` has finished with an array when it returns, so an array is free again `turns` images later.
    """

    def __init__(self, turns: int) -> None:
        """`turns` is the number of arrays that take turns."""
        self._turns = turns
        self._arrays: list[array[int]] = []
        self._next = 0

    def lend(self, size: int) -> "array[int]":
        """Return an array of `size` bytes, which stays as it is until `turns` more have been lent."""
        if not self._arrays or len(self._arrays[0]) != size:
            self._arrays = [array("B", bytes(size)) for _ in range(self._turns)]
            self._next = 0
        lent = self._arrays[self._next]
        self._next = (self._next + 1) % self._turns
        return lent

    def give_back(self) -> None:
        """Keep no array, so that the memory is free once nobody else has one of them."""
        self._arrays = []


def rgb8_image(width: int, height: int, frame_id: str) -> Image:
    """Return an rgb8 message without pixels; `set_pixels` gives it some."""
    image = Image(height=height, width=width, encoding="rgb8", is_bigendian=0, step=width * RGB8_BYTES_PER_PIXEL)
    image.header.frame_id = frame_id
    return image


def set_pixels(image: Image, pixels: "ImageBytes") -> None:
    """Make `pixels`, step * height bytes, the data of the message; without a copy if it is an array('B')."""
    if image.step * image.height != len(pixels):
        raise ValueError(f"{len(pixels)} bytes are no image of {image.height} rows of {image.step} bytes.")
    set_data(image, pixels)


def set_data(image: Image | CompressedImage, data: "ImageBytes") -> None:
    """Make the bytes the data of the message as they are; without a copy if they are an array('B')."""
    # The property checks every element on some distributions and copies the array on others; the slot does neither.
    image._data = data if isinstance(data, array) else array("B", data)


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
