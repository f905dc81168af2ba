# SPDX-License-Identifier: Apache-2.0
"""DrawnCamera: the pinhole of an emulated vehicle's camera, and which way it looks.

Pixels count columns to the right and rows down, with pixel centres at whole numbers. Optical axes are x right, y down,
z into the picture; body axes x forward, y left, z up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.motion.matrices import Matrix, Vector

# What takes vectors of the body frame to the optical frame.

#: A camera that looks along the body's -z: the top of its picture is forward.
DOWNWARD: Matrix = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
#: A camera that looks along the body's x: the top of its picture is up.
FORWARD: Matrix = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])


@dataclass(frozen=True, slots=True)
class DrawnCamera:
    """A pinhole with square pixels."""

    width: int  # pixels
    height: int  # pixels
    focal_length: float  # pixels
    optical_from_body: Matrix

    @property
    def field_of_view(self) -> float:
        """In degrees, horizontal, from edge to edge."""
        return round(math.degrees(2 * math.atan(self.width / 2 / self.focal_length)), 9)

    @property
    def matrix(self) -> Matrix:
        """Projects directions in the optical frame to homogeneous pixels."""
        focal = self.focal_length
        return np.array([[focal, 0, (self.width - 1) / 2], [0, focal, (self.height - 1) / 2], [0, 0, 1.0]])

    def view(self, rotation: Matrix) -> Matrix:
        """Return the projection of vectors from the camera, in the world frame, to homogeneous pixels.

        `rotation` takes the body frame to the world frame. The third homogeneous coordinate is the depth, in m.
        """
        view: Matrix = self.matrix @ self.optical_from_body @ rotation.T
        return view

    def sees(self, rotation: Matrix, towards: Vector) -> bool:
        """Return whether something in that direction (from the camera, world frame) is in the image."""
        column, row, depth = self.view(rotation) @ towards
        if depth <= 0:
            return False
        column, row = column / depth, row / depth
        return bool(-0.5 <= column <= self.width - 0.5 and -0.5 <= row <= self.height - 0.5)
