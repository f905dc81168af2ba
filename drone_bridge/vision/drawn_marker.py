# SPDX-License-Identifier: Apache-2.0
"""draw_marker: image of an ArUco marker, as for printing."""

from __future__ import annotations

from typing import Any

import cv2

from drone_bridge.vision.surfaces import Image


def draw_marker(dictionary: str, identity: int, pixels: int) -> Image:
    """Return the image of a marker without margin, pixels x pixels, 0 or 255. `dictionary`: by OpenCV's name."""
    aruco: Any = cv2.aruco
    draw = aruco.generateImageMarker if hasattr(aruco, "generateImageMarker") else aruco.drawMarker  # before 4.7
    marker: Image = draw(aruco.getPredefinedDictionary(getattr(aruco, dictionary)), identity, pixels)
    return marker
