# SPDX-License-Identifier: Apache-2.0
"""Reads and validates the measurements of one moment of a drone without GPS, and sightings of the pad."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from geometry_msgs.msg import PointStamped, TwistStamped
from sensor_msgs.msg import CameraInfo, Imu
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.controllers.camera_messages import read_pinhole, read_pixels
from drone_bridge.controllers.land_on_pad.data import Measured, PadSighting
from drone_bridge.controllers.pose_messages import read_angles
from drone_bridge.motion.matrices import Matrix, Vector, rotation_from_angles
from drone_bridge.msg import LandingPad
from drone_bridge.ros.time import seconds_of
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import confidence

IMU, VELOCITY, HEIGHT, LANDING_PAD = "imu/data", "velocity", "height", "landing_pad"
IMAGE, CAMERA_INFO = "camera/image_raw", "camera/camera_info"
#: The frame, without its prefix, of what is measured along axes that do not tilt with the drone.
LEVEL_FRAME: Final = "base_stabilized"
#: The topics that are read here, and their types.
TYPES: Final[dict[str, type]] = {
    IMU: Imu,
    VELOCITY: TwistStamped,
    HEIGHT: PointStamped,
    LANDING_PAD: LandingPad,
    IMAGE: ImageMessage,
    CAMERA_INFO: CameraInfo,
}

LEAST_CONFIDENCE: Final = 0.1  # a pad that is seen with less is not looked at
# How far off landing_pad is, at a confidence of 1.
PAD_DEVIATION: Final = 0.02  # m
PAD_DEVIATION_PER_METRE: Final = 0.015


def read_measured(messages: Mapping[str, Any], landed: bool) -> Measured:
    """Return the measurements in the messages, by topic, of one stamp, with the sighting if landing_pad is among them.

    Their headers say whether velocity and landing_pad are tilted with the drone. Raises ValueError with a sentence for
    what can't be used.
    """
    imu = messages[IMU]
    rotation = _attitude(imu)
    linear = messages[VELOCITY].twist.linear
    height = messages[HEIGHT].point.z
    _check_finite(VELOCITY, linear.x, linear.y, linear.z)
    _check_finite(HEIGHT, height)
    stamp = seconds_of(messages[IMU].header.stamp)
    pad = messages.get(LANDING_PAD)
    sighting = None
    if pad is not None and pad.detected:
        _check_finite(LANDING_PAD, pad.offset_x, pad.offset_y, pad.distance, pad.confidence)
        if pad.confidence >= LEAST_CONFIDENCE:
            offset = _axes(imu, LANDING_PAD, pad.header.frame_id) @ np.array(
                [pad.offset_x, pad.offset_y, -pad.distance]
            )
            deviation = (PAD_DEVIATION + PAD_DEVIATION_PER_METRE * abs(pad.distance)) / min(pad.confidence, 1.0)
            sighting = PadSighting(stamp, offset, deviation, deviation)
    axes = _axes(imu, VELOCITY, messages[VELOCITY].header.frame_id)
    velocity: Vector = axes @ np.array([linear.x, linear.y, linear.z])
    return Measured(stamp, rotation, velocity, float(height), sighting, landed)


def read_sighting(messages: Mapping[str, Any], detector: MarkerDetector) -> PadSighting | None:
    """Return the pad's position in the image, with the camera info and attitude of its stamp, if it is visible.

    Raises ValueError with a sentence for what can't be used.
    """
    pinhole = read_pinhole(messages[CAMERA_INFO], CAMERA_INFO)
    pixels = read_pixels(messages[IMAGE], IMAGE, pinhole, CAMERA_INFO)
    view = detector.locate(detector.detect(pixels), pinhole, _attitude(messages[IMU]))
    if view is None:
        return None
    return PadSighting(seconds_of(messages[IMAGE].header.stamp), view.offset, view.deviation, view.vertical_deviation)


def pad_message(sighting: PadSighting | None, imu: Imu) -> LandingPad:
    """Return a sighting, or none, as a landing_pad message in body axes."""
    message = LandingPad(header=imu.header, detected=sighting is not None)
    message.offset_x = message.offset_y = message.distance = message.confidence = math.nan
    if sighting:
        message.offset_x, message.offset_y, up = (_attitude(imu).T @ sighting.offset).tolist()
        message.distance = -up
        message.confidence = confidence(sighting.deviation)
    return message


def _attitude(imu: Imu) -> Matrix:
    """Return the rotation from body axes to world axes."""
    return rotation_from_angles(*_angles(imu))


def _axes(imu: Imu, topic: str, frame_id: str) -> Matrix:
    """Return the rotation from the axes of a frame to world axes."""
    if frame_id == imu.header.frame_id:
        return _attitude(imu)
    if frame_id.rpartition("/")[2] == LEVEL_FRAME:
        return rotation_from_angles(0.0, 0.0, _angles(imu)[2])
    raise ValueError(
        f"{topic} is in the frame {frame_id!r}, and has to be in {LEVEL_FRAME!r} or, as {IMU}, in "
        f"{imu.header.frame_id!r}."
    )


def _angles(imu: Imu) -> tuple[float, float, float]:
    if (angles := read_angles(imu, IMU)) is None:
        raise ValueError(f"{IMU} has no orientation, which is required.")
    return angles


def _check_finite(topic: str, *values: float) -> None:
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{topic} says {', '.join(f'{value:g}' for value in values)}, and numbers must be finite.")
