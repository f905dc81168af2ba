# SPDX-License-Identifier: Apache-2.0
"""The expanding square, a pattern of search and rescue."""

from __future__ import annotations

from typing import Final

import numpy as np

from drone_bridge.motion.matrices import Vector

CORNER_REACHED_M: Final = 0.4
_DIRECTIONS: Final = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


class ExpandingSquare:
    """Legs of 1, 1, 2, 2, 3, 3 ... times the spacing around a centre, each at a right angle to the one before.

    At the radius it starts over in the middle.
    """

    def __init__(self, middle: Vector, spacing: float, radius: float) -> None:
        self._middle = middle.copy()
        self._spacing = spacing
        self._radius = radius
        self._leg = 0
        self.corner = middle.copy()

    def advance(self, position: Vector) -> Vector:
        """Return the corner to fly to, the next one when this one is reached."""
        if float(np.linalg.norm(self.corner - position)) < CORNER_REACHED_M:
            direction = np.array(_DIRECTIONS[self._leg % len(_DIRECTIONS)])
            self.corner = self.corner + (self._leg // 2 + 1) * self._spacing * direction
            self._leg += 1
            if float(np.abs(self.corner - self._middle).max()) > self._radius:
                self.corner, self._leg = self._middle.copy(), 0
        return self.corner
