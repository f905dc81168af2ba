# SPDX-License-Identifier: Apache-2.0
"""What a drone without GPS measures at one moment, and where it sees a pad, read from messages and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from sensor_msgs.msg import CameraInfo, Imu, Range
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.controllers.camera_messages import read_pinhole, read_pixels
from drone_bridge.controllers.land_on_pad.data import Measured, PadSighting
from drone_bridge.controllers.land_on_pad.marker_detector import MarkerDetector
from drone_bridge.controllers.pose_messages import read_angles
from drone_bridge.controllers.rotations import Matrix, Vector, rotation_from_angles
from drone_bridge.msg import LandingPad
from drone_bridge.translate.time import NANOSECONDS

IMU, VELOCITY, ALTITUDE, LANDING_PAD = "imu/data", "velocity", "altitude", "landing_pad"
IMAGE, CAMERA_INFO = "camera/image_raw", "camera/camera_info"
#: The topics that are read here, and their types.
TYPES: Final[dict[str, type]] = {
    IMU: Imu,
    VELOCITY: TwistStamped,
    ALTITUDE: Range,
    LANDING_PAD: LandingPad,
    IMAGE: ImageMessage,
    CAMERA_INFO: CameraInfo,
}

LEAST_CONFIDENCE: Final = 0.1  # a pad that is seen with less is not looked at
HALF_CONFIDENT_DEVIATION: Final = 0.5  # m, at which an own sighting has a confidence of a half
# How far off landing_pad is, at a confidence of 1.
PAD_DEVIATION: Final = 0.02  # m
PAD_DEVIATION_PER_METRE: Final = 0.015


def read_measured(messages: Mapping[str, Any], is_levelled: bool, landed: bool) -> Measured:
    """Return what the messages, by topic, of one stamp say, with the sighting if landing_pad is among them.

    `is_levelled` says that velocity and landing_pad are turned with the drone's yaw, but not tilted with it.
    Raises ValueError with a sentence for what can't be used.
    """
    rotation, axes = _axes(messages[IMU], is_levelled)
    linear = messages[VELOCITY].twist.linear
    altitude = messages[ALTITUDE].range
    _check_finite(VELOCITY, linear.x, linear.y, linear.z)
    _check_finite(ALTITUDE, altitude)
    stamp = _seconds(messages[IMU].header.stamp)
    pad = messages.get(LANDING_PAD)
    sighting = None
    if pad is not None and pad.detected:
        _check_finite(LANDING_PAD, pad.offset_x, pad.offset_y, pad.distance, pad.confidence)
        if pad.confidence >= LEAST_CONFIDENCE:
            offset = axes @ np.array([pad.offset_x, pad.offset_y, -pad.distance])
            deviation = (PAD_DEVIATION + PAD_DEVIATION_PER_METRE * abs(pad.distance)) / min(pad.confidence, 1.0)
            sighting = PadSighting(stamp, offset, deviation, deviation)
    velocity: Vector = axes @ np.array([linear.x, linear.y, linear.z])
    return Measured(stamp, rotation, velocity, float(altitude), sighting, landed)


def read_sighting(messages: Mapping[str, Any], detector: MarkerDetector) -> PadSighting | None:
    """Return where the image, with the camera info and attitude of its stamp, shows the pad, if it does.

    Raises ValueError with a sentence for what can't be used.
    """
    pinhole = read_pinhole(messages[CAMERA_INFO], CAMERA_INFO)
    pixels = read_pixels(messages[IMAGE], IMAGE, pinhole, CAMERA_INFO)
    rotation, _ = _axes(messages[IMU], is_levelled=False)
    view = detector.locate(detector.detect(pixels), pinhole, rotation)
    if view is None:
        return None
    return PadSighting(_seconds(messages[IMAGE].header.stamp), view.offset, view.deviation, view.vertical_deviation)


def pad_message(sighting: PadSighting | None, imu: Imu, is_levelled: bool) -> LandingPad:
    """Return what landing_pad would say about a sighting, or about none, with the attitude that went with it."""
    message = LandingPad(header=imu.header, detected=sighting is not None)
    message.offset_x = message.offset_y = message.distance = message.confidence = math.nan
    if sighting:
        _, axes = _axes(imu, is_levelled)
        message.offset_x, message.offset_y, up = (axes.T @ sighting.offset).tolist()
        message.distance = -up
        message.confidence = 1 / (1 + sighting.deviation / HALF_CONFIDENT_DEVIATION)
    return message


def _axes(imu: Imu, is_levelled: bool) -> tuple[Matrix, Matrix]:
    """Return the drone's attitude, and what turns its measurements into levelled axes."""
    angles = read_angles(imu, IMU)
    if angles is None:
        raise ValueError(f"{IMU} says that there is no orientation, and without one nothing can be followed.")
    rotation = rotation_from_angles(*angles)
    return rotation, rotation_from_angles(0.0, 0.0, angles[2]) if is_levelled else rotation


def _check_finite(topic: str, *values: float) -> None:
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{topic} says {', '.join(f'{value:g}' for value in values)}, and numbers have to be finite.")


def _seconds(stamp: Time) -> float:
    return float(stamp.sec) + float(stamp.nanosec) / NANOSECONDS
