# SPDX-License-Identifier: Apache-2.0
"""The pad with its ArUco markers in images."""

import cv2
import numpy as np

from drone_bridge.telemetry.vehicle.emulator.scene import PAD_SIDE, draw_pad


def photograph_of_pad(height, ahead=0.0, left=0.0, focal=277.0):
    """Return a JPEG of the pad `height` m below a level camera that looks down, its front ahead; f in pixels."""
    width, rows = 320, 240
    side = round(focal * PAD_SIDE / height)
    image = np.full((rows, width), 128, np.uint8)
    top = round((rows - side) / 2 - focal * ahead / height)
    first = round((width - side) / 2 - focal * left / height)
    image[top : top + side, first : first + side] = draw_pad(side)
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()
