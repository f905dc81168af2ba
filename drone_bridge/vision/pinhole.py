# SPDX-License-Identifier: Apache-2.0
"""Converts pixels of a camera to directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]  # height x width x 3: red, green, blue
Vectors = npt.NDArray[np.float64]  # n x 3


@dataclass(frozen=True, slots=True)
class Pinhole:
    """A camera's intrinsics as in CameraInfo: pixels, with the centre of the top left one at (0, 0)."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @property
    def half_width_angle(self) -> float:
        """The smaller of the angles from the optical axis to the left and right edge, rad."""
        return math.atan(min(self.cx + 0.5, self.width - 0.5 - self.cx) / self.fx)

    @property
    def half_height_angle(self) -> float:
        """The smaller of the angles from the optical axis to the upper and lower edge, rad."""
        return math.atan(min(self.cy + 0.5, self.height - 0.5 - self.cy) / self.fy)

    def directions(self, columns: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]) -> Vectors:
        """Return unit vectors through image points, n x 3, in the body's axes: x forward, y left, z up."""
        rays = np.stack(
            [np.ones_like(columns), (self.cx - columns) / self.fx, (self.cy - rows) / self.fy],
            axis=1,
        )
        unit: Vectors = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        return unit
