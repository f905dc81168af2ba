# SPDX-License-Identifier: Apache-2.0
"""LandingScene: the ground below the emulated drone's downward camera, and the rover's top with the landing pad.

The pad is a white plate with two ArUco markers around its middle, one inside the other. The large one is detected from
afar, and the small one from close by, when the large one no longer fits into the image. The four inner cells of the
large marker are white, and the small one lies inside them, so that neither interferes with the other. OpenCV's detector
reports only one of two nested markers: below 3 m mostly the small one, above 4 m the large one. Lengths are in metres
in the pad's frame: origin in its middle, x forward, y left, as the rover drives, z up.
"""

from __future__ import annotations

import math

import numpy as np

from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.vision.drawn_camera import DOWNWARD, DrawnCamera
from drone_bridge.vision.drawn_marker import draw_marker
from drone_bridge.vision.markers import MarkerParameters
from drone_bridge.vision.surfaces import Colour, Image, Surface, ground

#: Camera in the middle of the drone, with a horizontal field of view of 60 degrees.
CAMERA = DrawnCamera(320, 240, 160 / math.tan(math.radians(30)), DOWNWARD)

# The pad.


PAD_SIDE = 1.0  # m
PAD_HEIGHT = 0.30  # m: the plate's surface above the ground, on top of the rover
#: Cells of the large marker are 0.12 m wide. The white square inside it measures 0.24 m.
MARKERS = MarkerParameters()

PLATE = 235  # of 255: white of the plate and the markers
INK = 20


def draw_pad(pixels: int) -> Image:
    """Return the plate from above, pixels x pixels, grey. Its front (+x) is the top row."""
    plate = np.full((pixels, pixels), PLATE, np.uint8)
    for identity, metres in zip(MARKERS.marker_ids, MARKERS.marker_sides, strict=True):
        side = round(metres / PAD_SIDE * pixels)
        printed = draw_marker(MARKERS.marker_dictionary, identity, side)
        first = (pixels - side) // 2
        plate[first : first + side, first : first + side] = np.where(printed > 127, PLATE, INK)
    return plate


# The scene.


ROVER_LENGTH = 1.3  # m, along x
ROVER_WIDTH = 1.1  # m, along y
ROVER_PIXELS_PER_METRE = 800

ROVER_TOP: Colour = (92, 78, 70)
ROVER_FRONT: Colour = (40, 140, 235)  # stripe that marks the front
STRIPE = 0.08  # m

JPEG_QUALITY = 70  # of 100


class LandingScene:
    """Ground, which depends on the seed, and the rover."""

    def __init__(self, camera: DrawnCamera, seed: int = 0) -> None:
        self.camera = camera
        self._ground = ground(seed)
        self._top = Surface(paint_rover(), ROVER_LENGTH, ROVER_WIDTH)

    def render(self, position: Vector, rotation: Matrix, rover: Vector) -> Image:
        """Return a new image.

        Args:
            position: position of the camera in the world frame, m.
            rotation: rotation from the body frame to the world frame.
            rover: position of the middle of the rover on the ground, x and y in m.
        """
        camera = self.camera
        view = camera.view(rotation)
        image = np.empty((camera.height, camera.width, 3), np.uint8)
        self._ground.show(image, view, -position, camera.focal_length)
        if position[2] > PAD_HEIGHT:
            top = np.array([rover[0], rover[1], PAD_HEIGHT]) - position
            self._top.show(image, view, top, camera.focal_length)
        return image


def paint_rover() -> Image:
    """Return the rover's top from above: the pad, and a stripe along the front edge."""
    scale = ROVER_PIXELS_PER_METRE
    painted = np.full((round(ROVER_LENGTH * scale), round(ROVER_WIDTH * scale), 3), ROVER_TOP, np.uint8)
    painted[: round(STRIPE * scale)] = ROVER_FRONT
    side = round(PAD_SIDE * scale)
    row, column = (painted.shape[0] - side) // 2, (painted.shape[1] - side) // 2
    painted[row : row + side, column : column + side] = draw_pad(side)[..., np.newaxis]
    return painted
