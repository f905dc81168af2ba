# SPDX-License-Identifier: Apache-2.0
"""camera_of: the camera of a Robot that sends H.264, as its pictures' topics and its emulator know it."""

import math

from drone_bridge.robot_class.transports import Camera
from drone_bridge.vision.picture_camera import PictureCamera


def camera_of(camera: Camera, name: str, width: int, height: int) -> PictureCamera:
    """Return a camera with this name in frames, whose pictures have this size, and whose lens is scaled to it."""
    x, y = width / camera.width, height / camera.height
    (fx, fy), (cx, cy) = camera.focal, camera.center
    diagonal = 2 * math.degrees(math.atan(math.hypot(camera.width, camera.height) / (fx + fy)))
    return PictureCamera(name, width, height, diagonal, lens=((x * fx, y * fy), (x * cx, y * cy)))
