# SPDX-License-Identifier: Apache-2.0
"""Rgb8Image: image messages around memory that a link has read, and the pixels and the camera of an image."""

from array import array
from typing import Union

from builtin_interfaces.msg import Time
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from drone_bridge.vision.raw_images import check_layout, rgb_of_raw

RGB8_BYTES_PER_PIXEL = 3
#: Pixels as a link received them.
ImageBytes = Union["array[int]", bytes, bytearray, memoryview]


class Rgb8Image:
    """An rgb8 message, made once for many images."""

    def __init__(self, width: int, height: int, frame_id: str) -> None:
        step = width * RGB8_BYTES_PER_PIXEL
        self._header = Header(frame_id=frame_id)
        self._message = Image(
            header=self._header, height=height, width=width, encoding="rgb8", is_bigendian=0, step=step
        )
        self._bytes = step * height

    def filled(self, pixels: ImageBytes, stamp: Time) -> Image:
        """Return the message, which is valid until the next call, with these pixels; not copied if an array('B').

        Raises ValueError for another number of bytes.
        """
        message = self._message
        if len(pixels) != self._bytes:
            raise ValueError(f"{len(pixels)} bytes are not an image of {message.height} rows of {message.step} bytes.")
        self._header.stamp = stamp
        set_data(message, pixels)
        return message


def set_data(image: Image | CompressedImage, data: ImageBytes) -> None:
    """Make the bytes the data of the message as they are; without a copy if they are an array('B')."""
    # The property checks every element on some distributions and copies the array on others; the slot does neither.
    image._data = data if isinstance(data, array) else array("B", data)


def rgb8_pixels(image: Image) -> ImageBytes:
    """Return the pixels without gaps as red, green, blue: the very bytes of an rgb8 image whose rows have none.

    Raises ValueError, with a sentence, for an encoding of more than 8 bits a channel, of colours in other terms, and
    for an image whose size and data do not fit each other.
    """
    if image.encoding == "rgb8" and image.step == image.width * RGB8_BYTES_PER_PIXEL:
        check_layout(image.encoding, image.width, image.height, image.step, len(image.data))
        return image.data  # type: ignore[no-any-return]
    return rgb_of_raw(image.data, image.encoding, image.width, image.height, image.step).tobytes()


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
