# SPDX-License-Identifier: Apache-2.0
"""DrawnCamera: pinhole and orientation of an emulated vehicle's camera.

Pixels count columns to the right and rows down, with pixel centres at whole numbers. Optical axes are x right, y down,
z into the picture; body axes x forward, y left, z up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.motion.matrices import Matrix, Vector

# Rotations from the body frame to the optical frame.

#: Camera along the body's -z. The top of its image is forward.
DOWNWARD: Matrix = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
#: Camera along the body's x. The top of its image is up.
FORWARD: Matrix = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])


@dataclass(frozen=True, slots=True)
class DrawnCamera:
    """Pinhole camera with square pixels."""

    width: int  # pixels
    height: int  # pixels
    focal_length: float  # pixels
    optical_from_body: Matrix

    @property
    def field_of_view(self) -> float:
        """Horizontal field of view from edge to edge, degrees."""
        return round(math.degrees(2 * math.atan(self.width / 2 / self.focal_length)), 9)

    @property
    def matrix(self) -> Matrix:
        """Projection from directions in the optical frame to homogeneous pixels."""
        focal = self.focal_length
        return np.array([[focal, 0, (self.width - 1) / 2], [0, focal, (self.height - 1) / 2], [0, 0, 1.0]])

    def view(self, rotation: Matrix) -> Matrix:
        """Return the projection from vectors in the world frame, relative to the camera, to homogeneous pixels.

        `rotation`: from the body frame to the world frame. The third homogeneous coordinate is the depth, m.
        """
        view: Matrix = self.matrix @ self.optical_from_body @ rotation.T
        return view

    def sees(self, rotation: Matrix, towards: Vector) -> bool:
        """Return whether a point is in the image. `towards`: from the camera, world frame."""
        column, row, depth = self.view(rotation) @ towards
        if depth <= 0:
            return False
        column, row = column / depth, row / depth
        return bool(-0.5 <= column <= self.width - 0.5 and -0.5 <= row <= self.height - 0.5)
