# SPDX-License-Identifier: Apache-2.0
"""SphereDetector: detection of a sphere of one colour, and of its outline.

The outline of a sphere is a circle of directions around the direction to its centre, regardless of the perspective
distortion in the image. Outlines are therefore represented as directions. Part of an outline determines the centre, so
the rest may be outside the image or behind an obstacle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from drone_bridge.vision.pinhole import Image, Pinhole, Vectors

# The outline lies somewhere between the centres of two neighbouring pixels.
EDGE_DEVIATION_PIXELS = 0.4
Mask = npt.NDArray[np.uint8]  # height x width; not 0: in the mask
MAX_EDGES = 120  # per image; more take time and hardly improve the estimate
MIDDLE_PIXELS = 800  # enough to compute the middle of a blob


@dataclass(frozen=True, slots=True)
class Outline:
    """Visible part of the sphere in one image."""

    edges: Vectors  # n x 3: directions of points on the outline, body axes; n may be 0
    deviations: npt.NDArray[np.float64]  # n: standard deviation of the angle of each, rad
    middle: npt.NDArray[np.float64]  # 3: direction to the middle of the visible part
    solid_angle: float  # of the visible part, sr
    fills_view: bool  # whether the sphere covers the whole image


class SphereDetector:
    """Detector of pixels of the target's colour, and of the outline between them and the background.

    Assumes that one sphere has this colour, and that the background is nearly white. The border to anything else may be
    that of an obstacle in front of the target. It is not part of the outline.
    """

    def __init__(self, pinhole: Pinhole, colour: Sequence[int], tolerance: int, background: int) -> None:
        """Prepare the detection.

        A pixel belongs to the target if each channel is within the tolerance. Of the others, pixels with all channels
        at or above `background` are background; with 0, all others are.
        """
        self._pinhole = pinhole
        self._lowest = np.array([max(channel - tolerance, 0) for channel in colour])
        self._highest = np.array([min(channel + tolerance, 255) for channel in colour])
        self._background = np.array([background] * 3)
        # Solid angle of a pixel: 1 / (fx fy) times the cubed cosine of the angle to the optical axis.
        columns = (np.arange(pinhole.width) - pinhole.cx) / pinhole.fx
        rows = (np.arange(pinhole.height) - pinhole.cy) / pinhole.fy
        self._solid_angles = (1 + columns**2 + rows[:, np.newaxis] ** 2) ** -1.5 / (pinhole.fx * pinhole.fy)

    def detect(self, image: Image) -> Outline | None:
        """Return the visible part of the sphere, or None. Raises ValueError if the image has another size."""
        expected = (self._pinhole.height, self._pinhole.width, 3)
        if image.shape != expected:
            raise ValueError(f"the image is {image.shape}, and the camera's are {expected}")
        mask: Mask = cv2.inRange(image, self._lowest, self._highest).astype(np.uint8, copy=False)
        left, top, width, height = cv2.boundingRect(mask)
        if not width:
            return None
        # With a margin of one pixel around the box, within the image.
        columns = slice(max(left - 1, 0), left + width + 1)
        rows = slice(max(top - 1, 0), top + height + 1)
        inside = mask[rows, columns] > 0
        background = (cv2.inRange(image[rows, columns], self._background, np.array([255] * 3)) > 0) & ~inside

        edge_columns, edge_rows = _borders(inside, background)
        if len(edge_columns) > MAX_EDGES:
            chosen = np.linspace(0, len(edge_columns) - 1, MAX_EDGES).astype(int)
            edge_columns, edge_rows = edge_columns[chosen], edge_rows[chosen]
        edges = self._pinhole.directions(edge_columns + columns.start, edge_rows + rows.start)

        middle, solid_angle = self._middle(inside, columns.start, rows.start)
        focal = math.sqrt(self._pinhole.fx * self._pinhole.fy)
        return Outline(edges, EDGE_DEVIATION_PIXELS / focal * edges[:, 0], middle, solid_angle, bool(mask.all()))

    def _middle(self, inside: npt.NDArray[np.bool_], left: int, top: int) -> tuple[npt.NDArray[np.float64], float]:
        """Return the mean direction of the pixels, weighted by solid angle, and the solid angle of all."""
        step = max(1, int(math.sqrt(inside.size / MIDDLE_PIXELS)))  # a coarse grid is enough for a large box
        rows, columns = np.nonzero(inside[::step, ::step])
        if not len(rows):  # slivers between the points of the grid
            step = 1
            rows, columns = np.nonzero(inside)
        rows, columns = step * rows + top, step * columns + left
        weights = self._solid_angles[rows, columns]
        mean = weights @ self._pinhole.directions(columns.astype(float), rows.astype(float))
        return mean / np.linalg.norm(mean), step * step * float(weights.sum())


def _borders(
    inside: npt.NDArray[np.bool_], outside: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return columns and rows of the points halfway between a pixel inside and a neighbour outside."""
    beside = (inside[:, :-1] & outside[:, 1:]) | (outside[:, :-1] & inside[:, 1:])
    below = (inside[:-1] & outside[1:]) | (outside[:-1] & inside[1:])
    beside_rows, beside_columns = np.nonzero(beside)
    below_rows, below_columns = np.nonzero(below)
    return (np.concatenate([beside_columns + 0.5, below_columns]), np.concatenate([beside_rows, below_rows + 0.5]))
