# SPDX-License-Identifier: Apache-2.0
"""FloorView: what an emulated drone's camera sees from its pose.

The forward camera sees the ground up to the horizon, in haze, and the tag that its navdata detects. The downward camera
sees only the ground.
"""

from __future__ import annotations

import numpy as np

from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.vision.drawn_camera import DOWNWARD, FORWARD, DrawnCamera
from drone_bridge.vision.drawn_marker import draw_marker
from drone_bridge.vision.picture_camera import PictureCamera
from drone_bridge.vision.seen_tag import TAG_POSITION_M, TAG_SIZE_M
from drone_bridge.vision.surfaces import FACING_BACK, Colour, Image, Surface, ground

#: Height of both cameras above the drone's feet, m.
CAMERA_HEIGHT = 0.1
SKY: Colour = (214, 198, 178)
HAZE = 12.0  # distance at which a third of the contrast is left, m
#: Reduction of the ground's resolution, as most of it is far away.
COARSER_AHEAD = 4.0
TAG_DICTIONARY, TAG_IDENTITY, TAG_PIXELS = "DICT_4X4_50", 7, 96
#: Width of the marker with its margin, cells.
TAG_CELLS, MARGIN_CELLS = 6, 1


class FloorView:
    """View of one of the cameras."""

    def __init__(self, camera: PictureCamera, seed: int) -> None:
        optical = DOWNWARD if camera.is_down else FORWARD
        self._camera = DrawnCamera(camera.width, camera.height, camera.focal_length, optical)
        self._ground = ground(seed)
        self._coarser = 1.0 if camera.is_down else COARSER_AHEAD
        margin = TAG_PIXELS * MARGIN_CELLS // TAG_CELLS
        marker = np.pad(draw_marker(TAG_DICTIONARY, TAG_IDENTITY, TAG_PIXELS), margin, constant_values=255)
        side = TAG_SIZE_M * (TAG_CELLS + 2 * MARGIN_CELLS) / TAG_CELLS
        self._tag = Surface(np.stack([marker] * 3, axis=2), side, side, directions=FACING_BACK)
        columns, rows = np.arange(camera.width, dtype=np.float32), np.arange(camera.height, dtype=np.float32)
        #: Homogeneous coordinates of each pixel, and the length of its ray at a depth of 1.
        self._pixels = (*np.meshgrid(columns, rows), np.float32(1.0))
        across, down = (size / 2 - 0.5 for size in (camera.width, camera.height))
        self._lengths = np.hypot(np.hypot(columns - across, (rows - down)[:, np.newaxis]) / camera.focal_length, 1.0)

    def draw(self, position: Vector, rotation: Matrix) -> Image:
        """Return a new image.

        Args:
            position: position of the drone in the world frame, m.
            rotation: rotation from the body frame to the world frame.
        """
        camera, eye = self._camera, position + np.array([0.0, 0.0, CAMERA_HEIGHT])
        view = camera.view(rotation)
        image: Image = np.empty((camera.height, camera.width, 3), np.uint8)
        self._ground.show(image, view, -eye, camera.focal_length, self._coarser)
        image = self._in_haze(image, view, float(eye[2]))
        towards_tag = np.array(TAG_POSITION_M) - eye
        if self._tag.is_ahead(view, towards_tag):
            self._tag.show(image, view, towards_tag, camera.focal_length)
        return image

    def _in_haze(self, image: Image, view: Matrix, height: float) -> Image:
        """Return the ground's image with haze, which covers everything above the horizon."""
        of_down = -np.linalg.inv(view)[2].astype(np.float32)  # descent of a pixel's ray at a depth of 1
        falls = sum(share * coordinate for share, coordinate in zip(of_down, self._pixels, strict=True))
        clear = np.exp(self._lengths * (-height / HAZE) / np.maximum(falls, 1e-6))[..., np.newaxis]
        sky = np.array(SKY, np.float32)
        hazy: Image = (sky + (image - sky) * clear.astype(np.float32)).astype(np.uint8)
        return hazy
