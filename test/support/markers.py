# SPDX-License-Identifier: Apache-2.0
"""ArUco markers in images, found by whichever OpenCV is installed."""

import cv2

from drone_bridge.emulators.landing.pad import MARKER_DICTIONARY


def detect(image):
    """Return the corners (4 x 2, pixels) of each marker by its identity."""
    dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, MARKER_DICTIONARY))
    if hasattr(cv2.aruco, "ArucoDetector"):
        corners, identities, _ = cv2.aruco.ArucoDetector(dictionary).detectMarkers(image)
    else:  # before 4.7
        corners, identities, _ = cv2.aruco.detectMarkers(image, dictionary)
    return {} if identities is None else dict(zip(identities.ravel().tolist(), (c[0] for c in corners), strict=True))
