# SPDX-License-Identifier: Apache-2.0
"""ArUco markers in images: drawn, and found by whichever OpenCV is installed."""

import cv2
import numpy as np

from drone_bridge.telemetry.emulator.scene import MARKER_DICTIONARY, PAD_SIDE, draw_pad


def detect(image):
    """Return the corners (4 x 2, pixels) of each marker by its identity."""
    dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, MARKER_DICTIONARY))
    if hasattr(cv2.aruco, "ArucoDetector"):
        corners, identities, _ = cv2.aruco.ArucoDetector(dictionary).detectMarkers(image)
    else:  # before 4.7
        corners, identities, _ = cv2.aruco.detectMarkers(image, dictionary)
    return {} if identities is None else dict(zip(identities.ravel().tolist(), (c[0] for c in corners), strict=True))


def photograph_of_pad(height, ahead=0.0, left=0.0, focal=277.0):
    """Return a JPEG of the pad `height` m below a level camera that looks down, its front ahead; f in pixels."""
    width, rows = 320, 240
    side = round(focal * PAD_SIDE / height)
    image = np.full((rows, width), 128, np.uint8)
    top = round((rows - side) / 2 - focal * ahead / height)
    first = round((width - side) / 2 - focal * left / height)
    image[top : top + side, first : first + side] = draw_pad(side)
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()
