# SPDX-License-Identifier: Apache-2.0
"""Detection of the landing pad in images, by its markers, and the landing_pad message."""

from __future__ import annotations

import math

from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image, Imu

from drone_bridge.controllers.camera_messages import read_pixels
from drone_bridge.controllers.land_on_pad.pilot import PadSighting
from drone_bridge.controllers.messages import read_angles
from drone_bridge.motion.matrices import Matrix, rotation_from_angles
from drone_bridge.msg import LandingPad
from drone_bridge.ros.time import seconds_of
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import confidence
from drone_bridge.vision.pinhole import Pinhole

IMU, LANDING_PAD = "imu/data", "landing_pad"
IMAGE, CAMERA_INFO = "camera/image_raw", "camera/camera_info"
#: Frame, without its prefix, of measurements along axes that do not tilt with the drone.
LEVEL_FRAME = "base_stabilized"
#: Frames whose axes share the body's heading and stay level.
LEVEL_FRAMES = LEVEL_FRAME, "base_footprint"


def sighting_in(detector: MarkerDetector, image: Image, pinhole: Pinhole, imu: Imu) -> PadSighting | None:
    """Locate a level pad in an image of a downward camera, whose top is forward. Return None if it is not visible.

    `imu` has the attitude at the image's stamp. Raises ValueError with a sentence for an invalid message.
    """
    pixels = read_pixels(image, IMAGE, pinhole, CAMERA_INFO)
    view = detector.locate(detector.detect(pixels), pinhole, attitude(imu))
    if view is None:
        return None
    return PadSighting(seconds_of(image.header.stamp), view.offset, view.deviation, view.vertical_deviation)


def pad_message(sighting: PadSighting | None, rotation: Matrix, frame_id: str, stamp: Time) -> LandingPad:
    """Return a landing_pad message in a frame; None: not detected. `rotation`: from its axes to the world's."""
    message = LandingPad(detected=sighting is not None)
    message.header.stamp, message.header.frame_id = stamp, frame_id
    message.offset_x = message.offset_y = message.distance = message.confidence = math.nan
    if sighting:
        message.offset_x, message.offset_y, up = (rotation.T @ sighting.offset).tolist()
        message.distance = -up
        message.confidence = confidence(sighting.deviation)
    return message


def attitude(imu: Imu) -> Matrix:
    """Return the rotation from body axes to world axes. Raises ValueError with a sentence."""
    return rotation_from_angles(*_angles(imu))


def heading(imu: Imu) -> Matrix:
    """Return the rotation from axes that share the body's heading and stay level. Raises ValueError with a sentence."""
    return rotation_from_angles(0.0, 0.0, _angles(imu)[2])


def axes(imu: Imu, topic: str, frame_id: str) -> Matrix:
    """Return the rotation from the axes of a topic's frame to world axes. Raises ValueError with a sentence."""
    if frame_id == imu.header.frame_id:
        return attitude(imu)
    if frame_id.rpartition("/")[2] in LEVEL_FRAMES:
        return heading(imu)
    raise ValueError(
        f"{topic} is in the frame {frame_id!r} but must be in {' or '.join(LEVEL_FRAMES)}, or, as {IMU}, in "
        f"{imu.header.frame_id!r}."
    )


def _angles(imu: Imu) -> tuple[float, float, float]:
    if (angles := read_angles(imu, IMU)) is None:
        raise ValueError(f"{IMU} has no orientation, which is required.")
    return angles
