# SPDX-License-Identifier: Apache-2.0
"""PictureCamera: a camera whose pictures are published or drawn, as a pinhole."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PictureCamera:
    """Camera by its data sheet: a pinhole with square pixels, centred in the picture."""

    name: str
    width: int  # pixels
    height: int  # pixels
    diagonal: float  # field of view from corner to corner, degrees
    is_down: bool = False  # looks down, and the top of its picture is forward; else it looks forward
    lens: tuple[tuple[float, float], tuple[float, float]] | None = None  # focal lengths and center, pixels

    @property
    def focal_length(self) -> float:
        """Focal length, pixels."""
        return math.hypot(self.width, self.height) / 2 / math.tan(math.radians(self.diagonal) / 2)
