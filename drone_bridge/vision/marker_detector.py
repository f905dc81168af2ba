# SPDX-License-Identifier: Apache-2.0
"""MarkerDetector: detection of a landing pad by its ArUco markers, in images of a downward camera.

The attitude is measured and the pad is level, so only its position and heading are unknown. The markers' corners then
give linear equations: the ray through a corner's pixel passes through that corner, whose position is linear in the
unknowns. This needs no iteration, and has none of the ambiguities of a pose from four points (PnP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from drone_bridge.vision.markers import MarkerParameters
from drone_bridge.vision.pinhole import Image, Pinhole, Vectors

Corners = npt.NDArray[np.float64]  # 4 x 2: columns and rows, clockwise from the marker's top left

# Downward camera with the top of its image forward: from its axes (x into the image, y to its left, z to its top) to
# the body's (x forward, y left, z up).
LOOKING_DOWN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
CORNER_DEVIATION_PIXELS = 0.3
ANGLE_DEVIATION = 0.01  # rad, of an image's attitude
LARGEST_RESIDUAL_PIXELS = 3.0  # rms; detections with a larger residual are no markers on a level pad
_CORNERS = np.array([(0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5)])  # x to the marker's top, y to its left


@dataclass(frozen=True, slots=True)
class PadView:
    """Position of the pad, measured in an image."""

    offset: npt.NDArray[np.float64]  # from the camera to the pad's middle, 3, m, levelled axes
    deviation: float  # standard deviation of the offset along each horizontal axis, m
    vertical_deviation: float  # the same along the vertical axis, m


class MarkerDetector:
    """Detector of the pad's markers in images."""

    def __init__(self, parameters: MarkerParameters) -> None:
        """Create the detector. Raises ValueError for a dictionary that OpenCV does not have."""
        name = parameters.marker_dictionary
        if not (name.startswith("DICT_") and hasattr(cv2.aruco, name)):
            raise ValueError(f"marker_dictionary must be one that OpenCV has, like DICT_4X4_50, not {name!r}")
        self._sides = dict(zip(parameters.marker_ids, parameters.marker_sides, strict=True))
        self._find = _finder(getattr(cv2.aruco, name))

    def detect(self, image: Image) -> dict[int, Corners]:
        """Return the corners of the pad's markers, by marker ID. A marker detected twice is ignored.

        The image is height x width x 3, red green blue.
        """
        found, identities = self._find(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))
        markers: dict[int, Corners] = {}
        twice = set()
        for corners, identity in zip(found, [] if identities is None else identities.ravel().tolist(), strict=True):
            if identity in markers:
                twice.add(identity)
            if identity in self._sides:
                markers[identity] = corners.reshape(4, 2).astype(float)
        return {identity: corners for identity, corners in markers.items() if identity not in twice}

    def locate(
        self, markers: dict[int, Corners], pinhole: Pinhole, rotation: npt.NDArray[np.float64]
    ) -> PadView | None:
        """Return the pad's position, or None if the detections can't be markers on a level pad.

        `rotation`: from body axes to levelled ones, 3 x 3.
        """
        if not markers:
            return None
        pixels = np.vstack(list(markers.values()))
        places = np.vstack([self._sides[identity] * _CORNERS for identity in markers])  # n x 2, m, the pad's axes
        rays = pinhole.directions(pixels[:, 0], pixels[:, 1]) @ (rotation @ LOOKING_DOWN).T
        cos, sin, offset = _pose(places, rays)
        if not offset[2] < 0:  # above the drone, or NaN
            return None
        turned = np.column_stack((cos * places[:, 0] - sin * places[:, 1], sin * places[:, 0] + cos * places[:, 1]))
        points = offset + np.column_stack((turned, np.zeros(len(places))))
        expected = points / np.linalg.norm(points, axis=1, keepdims=True)
        focal = math.sqrt(pinhole.fx * pinhole.fy)
        if focal * math.sqrt(float(np.mean(np.sum((expected - rays) ** 2, axis=1)))) > LARGEST_RESIDUAL_PIXELS:
            return None
        distance = float(np.linalg.norm(offset))
        largest = max(self._sides[identity] for identity in markers)
        # The distance follows from the size of the markers. It is far less accurate than the direction.
        along = distance**2 * CORNER_DEVIATION_PIXELS / (focal * largest)
        beside = float(np.linalg.norm(offset[:2])) / distance
        across = math.hypot(ANGLE_DEVIATION * distance, along * beside)
        return PadView(offset, across, math.hypot(along, ANGLE_DEVIATION * distance * beside))


def _pose(places: Vectors, rays: Vectors) -> tuple[float, float, npt.NDArray[np.float64]]:
    """Return cosine and sine of the pad's heading, and its offset, 3, m, by a fit to the rays.

    The cross product of a ray and the point on it is zero, and the point is linear in the unknowns. The solution is
    therefore the singular vector of the smallest singular value.
    """
    count = len(places)
    points = np.zeros((count, 3, 5))  # coefficients of (cos, sin, offset)
    points[:, 0, 0], points[:, 0, 1] = places[:, 0], -places[:, 1]
    points[:, 1, 0], points[:, 1, 1] = places[:, 1], places[:, 0]
    points[:, :, 2:] = np.eye(3)
    crosses = np.zeros((count, 3, 3))  # r x p = cross @ p
    x, y, z = rays.T
    crosses[:, 0, 1], crosses[:, 0, 2], crosses[:, 1, 2] = -z, y, -x
    crosses -= crosses.transpose(0, 2, 1)
    _, _, vectors = np.linalg.svd((crosses @ points).reshape(3 * count, 5))
    solution = vectors[-1]
    # Its length and sign are free: the pad is below, and cos^2 + sin^2 = 1.
    length = max(math.hypot(solution[0], solution[1]), 1e-12) * (-1.0 if solution[4] > 0 else 1.0)
    solution = solution / length
    return float(solution[0]), float(solution[1]), solution[2:]


def _finder(dictionary: int) -> Any:
    """Return a marker detector for grey images, for OpenCV before 4.7 as well."""
    aruco: Any = cv2.aruco
    is_new = hasattr(aruco, "ArucoDetector")
    parameters = aruco.DetectorParameters() if is_new else aruco.DetectorParameters_create()
    parameters.cornerRefinementMethod = aruco.CORNER_REFINE_SUBPIX
    parameters.cornerRefinementWinSize = 3
    if is_new:
        detector = aruco.ArucoDetector(aruco.getPredefinedDictionary(dictionary), parameters)
        return lambda grey: detector.detectMarkers(grey)[:2]
    known = aruco.Dictionary_get(dictionary)
    return lambda grey: aruco.detectMarkers(grey, known, parameters=parameters)[:2]
