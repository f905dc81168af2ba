# SPDX-License-Identifier: Apache-2.0
"""Camera: the two cameras of an AR.Drone. Nothing on the wire names them: the size of a picture distinguishes them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera by its data sheet: a pinhole with square pixels whose axis meets the middle of the picture."""

    name: str
    width: int  # pixels
    height: int  # pixels
    diagonal: float  # field of view from corner to corner, degrees

    @property
    def focal_length(self) -> float:
        """In pixels."""
        return math.hypot(self.width, self.height) / 2 / math.tan(math.radians(self.diagonal) / 2)


#: In the nose, looking forward.
FRONT = Camera("front", 320, 240, 93.0)
#: In the belly, looking down; the top of its picture is forward.
DOWN = Camera("down", 176, 144, 64.0)
CAMERAS = (FRONT, DOWN)
