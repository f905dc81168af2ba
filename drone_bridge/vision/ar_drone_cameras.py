# SPDX-License-Identifier: Apache-2.0
"""ArDroneCamera: the two cameras of an AR.Drone. The wire does not name them.

Those of an AR.Drone 1 are distinguished by picture size. An AR.Drone 2 sends both in one size, so that the setting of
the camera tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArDroneCamera:
    """Camera by its data sheet: a pinhole with square pixels, centred in the picture."""

    name: str
    width: int  # pixels
    height: int  # pixels
    diagonal: float  # field of view from corner to corner, degrees
    lens: tuple[tuple[float, float], tuple[float, float]] | None = None  # focal lengths and center, pixels

    @property
    def focal_length(self) -> float:
        """Focal length, pixels."""
        return math.hypot(self.width, self.height) / 2 / math.tan(math.radians(self.diagonal) / 2)


#: Forward camera in the nose.
FRONT = ArDroneCamera("front", 320, 240, 93.0)
#: Downward camera in the belly. The top of its picture is forward.
DOWN = ArDroneCamera("down", 176, 144, 64.0)
CAMERAS = (FRONT, DOWN)
#: The same of an AR.Drone 2, as it sends them by default.
FRONT_2 = ArDroneCamera("front", 640, 360, 92.0)
DOWN_2 = ArDroneCamera("down", 640, 360, 64.0)


def camera_of(name: str, width: int, height: int) -> ArDroneCamera:
    """Return the camera of a picture in any size; without a name that of an AR.Drone 1, by its size."""
    if not name:
        return next(each for each in CAMERAS if each.width == width)
    diagonal = (FRONT_2 if name == FRONT_2.name else DOWN_2).diagonal
    return ArDroneCamera(name, width, height, diagonal)
