# SPDX-License-Identifier: Apache-2.0
"""Rgb8Image: zero-copy image messages; conversion of pixels, and CameraInfo of a pinhole camera."""

from array import array
from typing import Union

from builtin_interfaces.msg import Time
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from drone_bridge.vision.raw_images import check_layout, rgb_of_raw

RGB8_BYTES_PER_PIXEL = 3
#: Pixels as received by a link.
ImageBytes = Union["array[int]", bytes, bytearray, memoryview]


class Rgb8Image:
    """Reusable rgb8 message."""

    def __init__(self, width: int, height: int, frame_id: str) -> None:
        step = width * RGB8_BYTES_PER_PIXEL
        self._header = Header(frame_id=frame_id)
        self._message = Image(
            header=self._header, height=height, width=width, encoding="rgb8", is_bigendian=0, step=step
        )
        self._bytes = step * height

    def filled(self, pixels: ImageBytes, stamp: Time) -> Image:
        """Return the message with new pixels, valid until the next call. An array('B') is not copied.

        Raises ValueError for a wrong number of bytes.
        """
        message = self._message
        if len(pixels) != self._bytes:
            raise ValueError(f"{len(pixels)} bytes are not an image of {message.height} rows of {message.step} bytes.")
        self._header.stamp = stamp
        set_data(message, pixels)
        return message


def set_data(image: Image | CompressedImage, data: ImageBytes) -> None:
    """Set the data of a message unchecked, without a copy if they are an array('B')."""
    # The property checks every element on some distributions and copies the array on others; the slot does neither.
    image._data = data if isinstance(data, array) else array("B", data)


def rgb8_pixels(image: Image) -> ImageBytes:
    """Return the pixels as contiguous red, green, blue. An rgb8 image without row padding is not copied.

    Raises ValueError, with a sentence, for an encoding with more than 8 bits per channel or another colour space, and
    for an image whose data do not match its size.
    """
    if image.encoding == "rgb8" and image.step == image.width * RGB8_BYTES_PER_PIXEL:
        check_layout(image.encoding, image.width, image.height, image.step, len(image.data))
        return image.data  # type: ignore[no-any-return]
    return rgb_of_raw(image.data, image.encoding, image.width, image.height, image.step).tobytes()


def pinhole_camera_info(
    width: int,
    height: int,
    *,
    focal_x: float,
    focal_y: float,
    frame_id: str,
    baseline: float = 0.0,
    center: tuple[float, float] | None = None,
) -> CameraInfo:
    """Return the CameraInfo of an ideal pinhole camera.

    Args:
        width: pixels.
        height: pixels.
        focal_x: horizontal focal length, pixels.
        focal_y: vertical focal length, pixels.
        frame_id: the optical frame.
        baseline: distance of this camera to the right of a stereo pair's reference camera, m.
        center: principal point, pixels; None for the image's centre.
    """
    # Pixel coordinates in ROS refer to pixel centres, so the image's centre is half a pixel before size / 2.
    centre_x, centre_y = center or ((width - 1) / 2, (height - 1) / 2)
    info = CameraInfo(height=height, width=width, distortion_model="plumb_bob", d=[0.0] * 5)
    info.header.frame_id = frame_id
    info.k = [focal_x, 0.0, centre_x, 0.0, focal_y, centre_y, 0.0, 0.0, 1.0]
    info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    # 0.0 - x instead of -x avoids -0.0.
    info.p = [focal_x, 0.0, centre_x, 0.0 - focal_x * baseline, 0.0, focal_y, centre_y, 0.0, 0.0, 0.0, 1.0, 0.0]
    return info
