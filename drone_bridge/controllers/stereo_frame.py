# SPDX-License-Identifier: Apache-2.0
"""What both cameras and the attitude say about one moment, checked: anybody may publish anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from cv_bridge import CvBridge
from sensor_msgs.msg import CameraInfo, Imu
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.controllers.attitude_estimator import MeasuredAttitude
from drone_bridge.controllers.sphere_detector import Image, Pinhole
from drone_bridge.translate.frames import Quaternion, euler_from_quaternion
from drone_bridge.translate.time import NANOSECONDS

#: The topics that make a frame.
TOPICS: Final = ("left/image_raw", "right/image_raw", "left/camera_info", "right/camera_info", "imu/data")
MESSAGE_TYPES: Final = (ImageMessage, ImageMessage, CameraInfo, CameraInfo, Imu)

# A quaternion whose length is further from 1 is no rotation.
_UNIT_TOLERANCE: Final = 0.1
# An angle with a variance above this, rad^2, is not measured but anything.
_UNKNOWN_VARIANCE: Final = 1.0

_IMAGES = CvBridge()


@dataclass(frozen=True, slots=True)
class StereoFrame:
    """Two images of the same size and what is needed to make sense of them."""

    stamp: float  # s
    left: Image
    right: Image
    pinhole: Pinhole  # of both cameras
    baseline: float  # m between the cameras
    attitude: MeasuredAttitude

    @classmethod
    def read(cls, messages: Mapping[str, Any]) -> StereoFrame:
        """Read the messages, by topic, of one stamp. Raises ValueError with a sentence for what can't be used."""
        left_info, right_info = messages["left/camera_info"], messages["right/camera_info"]
        pinhole = _pinhole(left_info)
        stamp = left_info.header.stamp
        return cls(
            stamp.sec + stamp.nanosec / NANOSECONDS,
            _pixels("left/image_raw", messages["left/image_raw"], pinhole),
            _pixels("right/image_raw", messages["right/image_raw"], pinhole),
            pinhole,
            _baseline(right_info),
            _attitude(messages["imu/data"]),
        )


def _pinhole(info: CameraInfo) -> Pinhole:
    if not (info.width and info.height):
        raise ValueError(f"left/camera_info says {info.width} x {info.height} pixels, and there has to be one.")
    pinhole = Pinhole(info.width, info.height, fx=info.k[0], fy=info.k[4], cx=info.k[2], cy=info.k[5])
    for name, value in (("fx", pinhole.fx), ("fy", pinhole.fy)):
        if not 0 < value < math.inf:
            raise ValueError(f"in left/camera_info, {name} is {value}, and has to be a finite number above 0.")
    for name, value, size in (("cx", pinhole.cx, info.width), ("cy", pinhole.cy, info.height)):
        if not -0.5 <= value <= size - 0.5:
            raise ValueError(f"in left/camera_info, {name} is {value}, outside the {size} pixels of the image.")
    return pinhole


def _baseline(right: CameraInfo) -> float:
    focal, shift = right.p[0], right.p[3]
    baseline = -shift / focal if focal else math.nan
    if not 0 <= baseline < math.inf:
        raise ValueError(
            f"in right/camera_info, P[3] is {shift} and P[0] is {focal}: they have to say how far to the right of "
            f"the left camera it is, -P[3] / P[0] in m, 0 at least."
        )
    return float(baseline)


def _pixels(topic: str, image: ImageMessage, pinhole: Pinhole) -> Image:
    """Return height x width x 3 (red, green, blue)."""
    if (image.width, image.height) != (pinhole.width, pinhole.height):
        raise ValueError(
            f"{topic} has {image.width} x {image.height} pixels, and left/camera_info says "
            f"{pinhole.width} x {pinhole.height}."
        )
    try:
        dtype, channels = _IMAGES.encoding_to_dtype_with_channels(image.encoding)
        row_bytes = image.width * channels * np.dtype(dtype).itemsize
        if (image.step, len(image.data)) != (row_bytes, row_bytes * image.height):
            raise ValueError(
                f"{topic} has {len(image.data)} bytes, {image.step} per row, and {image.width} x {image.height} pixels "
                f"of {image.encoding} are {row_bytes * image.height}, {row_bytes} per row."
            )
        pixels: Image = _IMAGES.imgmsg_to_cv2(image, "rgb8")
    except ValueError:
        raise
    except Exception as error:
        # Among others KeyError and RuntimeError, as the encoding and the version of cv_bridge have it.
        encoding = f"{image.encoding!r}, {'big' if image.is_bigendian else 'little'}-endian"
        raise ValueError(f"{topic} is encoded as {encoding}, of which cv_bridge can't make rgb8.") from error
    return pixels


def _attitude(imu: Imu) -> MeasuredAttitude:
    if imu.orientation_covariance[0] < 0:  # which says that there is no orientation
        return MeasuredAttitude()
    q = imu.orientation
    length = math.hypot(q.x, q.y, q.z, q.w)
    if not abs(length - 1) <= _UNIT_TOLERANCE:
        raise ValueError(f"the orientation in imu/data is ({q.x}, {q.y}, {q.z}, {q.w}), and has to have length 1.")
    angles = euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w))
    variances = imu.orientation_covariance[0::4]
    known = [angle if variance < _UNKNOWN_VARIANCE else None for angle, variance in zip(angles, variances, strict=True)]
    return MeasuredAttitude(*known)
