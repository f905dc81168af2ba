# SPDX-License-Identifier: Apache-2.0
"""SeenTag: the tag ahead of an emulated drone, as its forward camera detects it."""

from __future__ import annotations

import math
from typing import NamedTuple

from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.vision.picture_camera import PictureCamera

#: Tag ahead of the drone's start position, facing it. The forward camera sees it.
TAG_POSITION_M = (4.0, 0.0, 1.2)
TAG_SIZE_M = 0.2
FARTHEST_TAG_M = 8.0


class SeenTag(NamedTuple):
    """Tag in an image: centre and size as shares of the image, from its upper left corner, and distance, m."""

    x: float
    y: float
    width: float
    height: float
    distance: float


def seen_tag(camera: PictureCamera, position: Vector, rotation: Matrix) -> SeenTag | None:
    """Return the tag if it is completely in the image.

    Args:
        camera: the forward camera.
        position: position of the drone in the world frame, m.
        rotation: rotation from the body frame to the world frame.
    """
    towards = TAG_POSITION_M - position
    ahead, left, up = (rotation.T @ towards).tolist()
    if not TAG_SIZE_M < ahead < FARTHEST_TAG_M:
        return None
    half_width, half_height = (ahead * pixels / 2 / camera.focal_length for pixels in (camera.width, camera.height))
    across, down = -left / half_width, -up / half_height
    width, height = (TAG_SIZE_M / (2 * half) for half in (half_width, half_height))
    if abs(across) + width > 1 or abs(down) + height > 1:
        return None
    return SeenTag((1 + across) / 2, (1 + down) / 2, width, height, math.hypot(*towards.tolist()))
