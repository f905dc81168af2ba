# SPDX-License-Identifier: Apache-2.0
"""The landing pad on the rover: its position, size and markers.

A white plate with two ArUco markers around its middle, one inside the other. The large one is found from afar, and the
small one from close by, when the large one no longer fits into the image. The four inner cells of the large marker are
white, and the small one lies in the middle of them, so that neither interferes with the other. OpenCV's detector
reports only one of two nested markers: below 3 m mostly the small one, above 4 m the large one.

Lengths are metres in the pad's frame: origin in its middle, x forward, y left, as the rover drives; z up. A detector
needs the dictionary, the identities and the sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]

PAD_SIDE = 1.0  # m
PAD_HEIGHT = 0.30  # m: the plate's surface above the ground, on top of the rover
MARKER_DICTIONARY = "DICT_4X4_50"  # a name in cv2.aruco


@dataclass(frozen=True, slots=True)
class Marker:
    """A square marker in the middle of the pad, its top towards the pad's front."""

    identity: int  # in MARKER_DICTIONARY
    side: float  # m, with the black border


LARGE_MARKER = Marker(identity=16, side=0.72)  # cells of 0.12 m; the white square inside measures 0.24 m
SMALL_MARKER = Marker(identity=1, side=0.12)
MARKERS = (LARGE_MARKER, SMALL_MARKER)

PLATE = 235  # of 255: the white of the plate and of the markers
INK = 20


def draw_marker(identity: int, pixels: int) -> Image:
    """Return a marker without margin, pixels x pixels, 0 and 255."""
    aruco: Any = cv2.aruco
    draw = aruco.generateImageMarker if hasattr(aruco, "generateImageMarker") else aruco.drawMarker  # before 4.7
    marker: Image = draw(aruco.getPredefinedDictionary(getattr(aruco, MARKER_DICTIONARY)), identity, pixels)
    return marker


def draw_pad(pixels: int) -> Image:
    """Return the plate seen from above, pixels x pixels, grey; its front (+x) is the top row, its left the left."""
    plate = np.full((pixels, pixels), PLATE, np.uint8)
    for marker in MARKERS:
        side = round(marker.side / PAD_SIDE * pixels)
        printed = draw_marker(marker.identity, side)
        first = (pixels - side) // 2
        plate[first : first + side, first : first + side] = np.where(printed > 127, PLATE, INK)
    return plate
