# SPDX-License-Identifier: Apache-2.0
"""Renders spheres as the drone's two cameras see them: flat colours on white, without lighting or anti-aliasing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.matrices import Vector
from drone_bridge.testbed.device.motion import DroneState
from drone_bridge.testbed.emulator.world import Sphere

Image = npt.NDArray[np.uint8]

WHITE = 255


class StereoCamera:
    """Two pinhole cameras side by side on the drone's pitch axis, looking forward.

    A pixel has the colour of what the ray through its centre meets first. Width and height are in pixels, the angles
    of view from edge to edge in degrees, the separation of the pinholes in m. Raises ValueError for an image without
    pixels and for angles outside 0 to 180 degrees.
    """

    def __init__(
        self, width: int, height: int, horizontal_angle: float, vertical_angle: float, separation: float
    ) -> None:
        if width < 1 or height < 1:
            raise ValueError(f"an image must be at least 1 x 1 pixels, not {width} x {height}")
        for name, angle in (("horizontal", horizontal_angle), ("vertical", vertical_angle)):
            if not 0 < angle < 180:
                raise ValueError(f"the {name} angle of view must be between 0 and 180 degrees, not {angle}")
        self.width = width
        self.height = height
        self.separation = separation
        self._focal_x = width / 2 / math.tan(math.radians(horizontal_angle) / 2)  # pixels
        self._focal_y = height / 2 / math.tan(math.radians(vertical_angle) / 2)
        self._row_slopes = (np.arange(height) + 0.5 - height / 2) / self._focal_y  # down per forward
        self._images = np.empty((2, height, width, 3), np.uint8)
        # Rows are written as bytes: a slice of a memoryview costs a third of one of an array.
        self._bytes = [memoryview(image.data).cast("B") for image in self._images]

    def render(self, state: DroneState, spheres: Sequence[Sphere]) -> tuple[Image, Image]:
        """Return the left and the right image, height x width x 3 (red, green, blue), top row first.

        The images are overwritten by the next call. They are neighbours in memory, left first. Spheres must not
        intersect each other.
        """
        self._images.fill(WHITE)
        for pixels, offset in zip(self._bytes, (-self.separation / 2, self.separation / 2), strict=True):
            pinhole = state.position + offset * state.rotation[:, 0]
            # Of two disjoint spheres, the one for which the pinhole has the smaller power (squared tangent length)
            # is in front: their radical plane separates them, and the pinhole is on its side. Paint it later.
            order = sorted(
                ((np.array(sphere.centre) - pinhole, sphere) for sphere in spheres),
                key=lambda seen: _power(seen[0], seen[1].radius),
                reverse=True,
            )
            for towards, sphere in order:
                right, up, backward = towards @ state.rotation
                self._paint(pixels, np.array([right, -up, -backward]), sphere)
        return self._images[0], self._images[1]

    def _paint(self, pixels: memoryview, centre: Vector, sphere: Sphere) -> None:
        """Paint a sphere whose centre is given in the camera's frame: right, down, forward."""
        colour_row = bytes(sphere.colour) * self.width
        power = _power(centre, sphere.radius)
        if power <= 0:  # the pinhole is inside
            pixels[:] = colour_row * self.height
            return
        starts, ends = self._spans(centre, power)
        for row in np.flatnonzero(starts < ends).tolist():
            start, end = int(starts[row]), int(ends[row])
            first = 3 * self.width * row
            pixels[first + 3 * start : first + 3 * end] = colour_row[: 3 * (end - start)]

    def _spans(self, centre: Vector, power: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first column of each row that shows the sphere, and the first one after the sphere.

        A ray d = (u, v, 1) meets a sphere around c in front of the pinhole where d.c > 0 and
        (d.c)^2 - power (d.d) >= 0. The directions that do so are a convex cone, therefore one interval in each row;
        its ends are roots of a quadratic in u.
        """
        x, y, z = centre
        level = y * self._row_slopes + z
        a = x * x - power
        b = x * level
        c = level * level - power * (self._row_slopes**2 + 1)
        discriminant = b * b - a * c
        with np.errstate(divide="ignore", invalid="ignore"):
            # Without cancellation, and right with an infinite root when a is 0.
            q = -(b + np.copysign(np.sqrt(np.maximum(discriminant, 0)), b))
            roots = np.sort(np.stack([q / a, c / q]), axis=0)
        smaller, larger = roots
        if a < 0:  # between the roots lies the sphere, or its mirror image behind the pinhole
            start, end = smaller, larger
            visible = (discriminant >= 0) & (level - x * b / a > 0)
        else:  # the sphere reaches beyond the plane of the pinhole, on one side
            beyond = np.full_like(level, math.copysign(np.inf, x))
            start, end = (larger, beyond) if x > 0 else (beyond, smaller)
            visible = ~np.isnan(larger)
        first = np.ceil(np.clip(self._column(np.where(visible, start, 0)), 0, self.width))
        after = np.floor(np.clip(self._column(np.where(visible, end, 0)), -1, self.width - 1)) + 1
        return np.where(visible, first, self.width).astype(np.int64), after.astype(np.int64)

    def _column(self, slope: Vector) -> Vector:
        """Return the column, with pixel centres at whole numbers, of slopes (right per forward)."""
        return slope * self._focal_x + (self.width - 1) / 2


def _power(centre: Vector, radius: float) -> float:
    """Return the squared length of a tangent to a sphere around centre, negative inside."""
    return float(centre @ centre) - radius * radius
