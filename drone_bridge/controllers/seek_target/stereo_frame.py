# SPDX-License-Identifier: Apache-2.0
"""Reads and validates the images and attitude of one moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sensor_msgs.msg import CameraInfo, Imu
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.controllers.camera_messages import read_pinhole, read_pixels
from drone_bridge.controllers.pose_messages import read_angles, read_pose
from drone_bridge.motion.attitude_estimator import MeasuredAttitude
from drone_bridge.motion.matrices import Triple
from drone_bridge.ros.time import seconds_of
from drone_bridge.vision.pinhole import Image, Pinhole

#: The topics that make a frame.
TOPICS: Final = ("left/image_raw", "right/image_raw", "left/camera_info", "right/camera_info", "imu/data")
#: And where it is published, this.
ODOMETRY: Final = "odom"
MESSAGE_TYPES: Final = (ImageMessage, ImageMessage, CameraInfo, CameraInfo, Imu)

# An angle with a variance above this, rad^2, is not measured but anything.
_UNKNOWN_VARIANCE: Final = 1.0


@dataclass(frozen=True, slots=True)
class StereoFrame:
    """Two images of the same size, with camera and attitude."""

    stamp: float  # s
    left: Image
    right: Image
    pinhole: Pinhole  # of both cameras
    baseline: float  # m between the cameras
    attitude: MeasuredAttitude
    place: Triple | None  # of the drone, m, if there is odometry

    @classmethod
    def read(cls, messages: Mapping[str, Any]) -> StereoFrame:
        """Read the messages, by topic, of one stamp. Raises ValueError with a sentence for invalid ones.

        Where there is odometry, it gives the attitude as well: its yaw and its position have the same frame.
        """
        left_info, right_info = messages["left/camera_info"], messages["right/camera_info"]
        place: Triple | None = None
        if ODOMETRY in messages:
            position, angles = read_pose(messages[ODOMETRY], ODOMETRY)
            x, y, z = position.tolist()
            attitude, place = MeasuredAttitude(*angles), (x, y, z)
        else:
            attitude = _attitude(messages["imu/data"])
        pinhole = read_pinhole(left_info, "left/camera_info")
        return cls(
            seconds_of(left_info.header.stamp),
            read_pixels(messages["left/image_raw"], "left/image_raw", pinhole, "left/camera_info"),
            read_pixels(messages["right/image_raw"], "right/image_raw", pinhole, "left/camera_info"),
            pinhole,
            _baseline(right_info),
            attitude,
            place,
        )


def _baseline(right: CameraInfo) -> float:
    focal, shift = right.p[0], right.p[3]
    baseline = -shift / focal if focal else math.nan
    if not 0 <= baseline < math.inf:
        raise ValueError(
            f"in right/camera_info, P[3] is {shift} and P[0] is {focal}: they have to say how far to the right of "
            f"the left camera it is, -P[3] / P[0] in m, 0 at least."
        )
    return float(baseline)


def _attitude(imu: Imu) -> MeasuredAttitude:
    angles = read_angles(imu, "imu/data")
    if angles is None:
        return MeasuredAttitude()
    variances = imu.orientation_covariance[0::4]
    known = [angle if variance < _UNKNOWN_VARIANCE else None for angle, variance in zip(angles, variances, strict=True)]
    return MeasuredAttitude(*known)
