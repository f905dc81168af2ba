# SPDX-License-Identifier: Apache-2.0
"""DrawnPictures: what the cameras of an emulated AR.Drone 1 see, as its video packets."""

from __future__ import annotations

import cv2
import numpy as np

from drone_bridge.ar_drone.cameras import DOWN, FRONT
from drone_bridge.ar_drone.flight import View
from drone_bridge.ar_drone.uvlc import encode
from drone_bridge.vision.floor_view import FloorView

#: Pictures per second.
DRAWN_RATE = 15.0


class DrawnPictures:
    """Pictures of an AR.Drone 1."""

    rate = DRAWN_RATE

    def __init__(self, seed: int) -> None:
        cv2.setNumThreads(1)  # waking other threads costs more than it gains for small images
        self._views = {camera: FloorView(camera, seed) for camera in (FRONT, DOWN)}
        self._number = 0

    def next(self, view: View) -> bytes:
        self._number += 1
        drawn = self._views[DOWN if view.is_down else FRONT].draw(view.position, view.rotation)
        image = cv2.cvtColor(drawn, cv2.COLOR_BGR2RGB)
        return encode(np.asarray(image, np.uint8), number=self._number)
