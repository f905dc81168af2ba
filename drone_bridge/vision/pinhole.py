# SPDX-License-Identifier: Apache-2.0
"""Pinhole: camera model that converts pixels to directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]  # height x width x 3: red, green, blue
Vectors = npt.NDArray[np.float64]  # n x 3


@dataclass(frozen=True, slots=True)
class Pinhole:
    """Camera intrinsics as in CameraInfo, in pixels. The centre of the top left pixel is (0, 0)."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @property
    def half_width_angle(self) -> float:
        """Angle from the optical axis to the nearer of the left and right edges, rad."""
        return math.atan(min(self.cx + 0.5, self.width - 0.5 - self.cx) / self.fx)

    @property
    def half_height_angle(self) -> float:
        """Angle from the optical axis to the nearer of the upper and lower edges, rad."""
        return math.atan(min(self.cy + 0.5, self.height - 0.5 - self.cy) / self.fy)

    def directions(self, columns: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]) -> Vectors:
        """Return unit vectors through image points, n x 3, in the body's axes: x forward, y left, z up."""
        rays = np.stack([np.ones_like(columns), (self.cx - columns) / self.fx, (self.cy - rows) / self.fy], axis=1)
        unit: Vectors = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        return unit
