# SPDX-License-Identifier: Apache-2.0
"""The projection of a camera that looks down from the drone.

Pixels count columns to the right and rows down, with pixel centres at whole numbers. The top of the image is forward,
so columns run to the body's right (-y) and rows backward (-x); it looks along the body's -z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drone_bridge.telemetry.emulator.flight import Matrix, Vector

Points = npt.NDArray[np.float64]  # n x 3

#: Takes vectors of the body frame to the optical frame: x right, y down the image, z into the picture.
OPTICAL_FROM_BODY: Matrix = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


@dataclass(frozen=True, slots=True)
class DownwardCamera:
    """A pinhole in the middle of the drone, with square pixels."""

    width: int = 320  # pixels
    height: int = 240  # pixels
    field_of_view: float = 60.0  # degrees, horizontal, from edge to edge

    @property
    def focal_length(self) -> float:
        """In pixels."""
        return self.width / 2 / math.tan(math.radians(self.field_of_view) / 2)

    @property
    def matrix(self) -> Matrix:
        """Projects directions in the optical frame to homogeneous pixels."""
        focal = self.focal_length
        return np.array([[focal, 0, (self.width - 1) / 2], [0, focal, (self.height - 1) / 2], [0, 0, 1.0]])

    def view(self, rotation: Matrix) -> Matrix:
        """Return the projection of vectors from the drone, in the world frame, to homogeneous pixels.

        `rotation` takes the body frame to the world frame. The third homogeneous coordinate is the depth, in m.
        """
        view: Matrix = self.matrix @ OPTICAL_FROM_BODY @ rotation.T
        return view

    def sees(self, rotation: Matrix, towards: Vector) -> bool:
        """Return whether something in that direction (from the drone, world frame) is in the image."""
        column, row, depth = self.view(rotation) @ towards
        if depth <= 0:
            return False
        column, row = column / depth, row / depth
        return bool(-0.5 <= column <= self.width - 0.5 and -0.5 <= row <= self.height - 0.5)
