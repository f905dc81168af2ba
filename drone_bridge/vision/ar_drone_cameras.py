# SPDX-License-Identifier: Apache-2.0
"""Camera: the two cameras of an AR.Drone. The wire does not name them: they are distinguished by picture size."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Camera:
    """Camera by its data sheet: a pinhole with square pixels, centred in the picture."""

    name: str
    width: int  # pixels
    height: int  # pixels
    diagonal: float  # field of view from corner to corner, degrees

    @property
    def focal_length(self) -> float:
        """Focal length, pixels."""
        return math.hypot(self.width, self.height) / 2 / math.tan(math.radians(self.diagonal) / 2)


#: Forward camera in the nose.
FRONT = Camera("front", 320, 240, 93.0)
#: Downward camera in the belly. The top of its picture is forward.
DOWN = Camera("down", 176, 144, 64.0)
CAMERAS = (FRONT, DOWN)
