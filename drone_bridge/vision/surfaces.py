# SPDX-License-Identifier: Apache-2.0
"""Surface: rendering of flat, textured rectangles in an emulated world, such as the ground.

The image of a plane in a pinhole camera is a perspective warp of its texture.
"""

from __future__ import annotations

import functools
import math

import cv2
import numpy as np
import numpy.typing as npt

from drone_bridge.motion.matrices import Matrix, Triple, Vector

Colour = tuple[int, int, int]  # blue, green, red
Image = npt.NDArray[np.uint8]  # rows x columns (x 3: blue, green, red), as in OpenCV

#: World directions of successive rows, from the top, and of successive columns, from the left, of a texture.
LYING: tuple[Triple, Triple] = ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0))  # seen from above: +x is its top, +y its left
FACING_BACK: tuple[Triple, Triple] = ((0.0, 0.0, -1.0), (0.0, -1.0, 0.0))  # upright, seen in the direction of +x

SMALLEST_LEVEL = 16  # pixels
NEAREST_M = 0.01

GROUND_SIDE = 16.0  # m, period of the ground; more than is visible at once from 13 m
GROUND_PIXELS = 2048
EARTH: Colour = (62, 88, 112)
GRASS: Colour = (70, 128, 96)


class Surface:
    """Rectangle with a texture.

    The texture is a mipmap: several levels, each half the size of the previous one. Sampling uses the level whose
    pixels are about as large as the camera's, which avoids flicker.
    """

    def __init__(
        self,
        painted: Image,
        length: float,
        width: float,
        *,
        repeats: bool = False,
        directions: tuple[Triple, Triple] = LYING,
    ) -> None:
        """Prepare the mipmap.

        Args:
            painted: the texture.
            length: along the image's rows, m.
            width: along the image's columns, m.
            repeats: whether it repeats in all directions without end.
            directions: world directions of rows and columns.
        """
        self._levels = [painted]
        while min(self._levels[-1].shape[:2]) >= 2 * SMALLEST_LEVEL:
            rows, columns = self._levels[-1].shape[:2]
            self._levels.append(_halved(self._levels[-1], rows, columns))
        self._length = length
        self._width = width
        self._repeats = repeats
        self._down, self._right = (np.array(direction) for direction in directions)
        self._normal = np.cross(self._right, self._down)

    def show(self, image: Image, view: Matrix, centre: Vector, focal_length: float, coarser: float = 1.0) -> None:
        """Draw the surface into an image.

        Args:
            image: drawn into.
            view: projection from `DrawnCamera.view`.
            centre: the surface's middle relative to the camera, in the world frame, m.
            focal_length: of the camera, pixels.
            coarser: factor by which the level is coarser than optimal for the nearest point, for a camera that looks
                along the surface.
        """
        # The normal points away from the side that shows the texture.
        footprint = coarser * max(float(self._normal @ centre), NEAREST_M) / focal_length
        finest = self._length / self._levels[0].shape[0]
        wanted = math.floor(math.log2(max(footprint / finest, 1.0)))
        painted = self._levels[min(wanted, len(self._levels) - 1)]
        rows, columns = painted.shape[:2]
        dx, dy = self._length / rows, self._width / columns
        first = centre - self._down * (self._length / 2 - dx / 2) - self._right * (self._width / 2 - dy / 2)
        # From columns and rows of the texture to positions relative to the camera.
        place = np.stack([self._right * dy, self._down * dx, first], axis=1)
        cv2.warpPerspective(
            painted,
            view @ place,
            (image.shape[1], image.shape[0]),
            dst=image,
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_WRAP if self._repeats else cv2.BORDER_TRANSPARENT,
        )

    def is_ahead(self, view: Matrix, centre: Vector) -> bool:
        """Return whether the whole rectangle is ahead of the camera and faces it, so that it can be drawn.

        Not meant for repeating surfaces, which extend to the horizon.
        """
        reach, across = self._down * self._length / 2, self._right * self._width / 2
        corners = (centre + way * reach + side * across for way in (-1, 1) for side in (-1, 1))
        is_turned_there = float(self._normal @ centre) > NEAREST_M
        return is_turned_there and all(float(view[2] @ corner) > NEAREST_M for corner in corners)


@functools.lru_cache(maxsize=2)
def ground(seed: int) -> Surface:
    """Return the ground. It is cached, since rendering takes a moment, for all vehicles with the same seed."""
    return Surface(paint_ground(seed), GROUND_SIDE, GROUND_SIDE, repeats=True)


def paint_ground(seed: int) -> Image:
    """Return the texture of the ground: patches of grass on earth, grain of every size, and matching edges."""
    generator = np.random.default_rng([seed, 2])  # independent of the noise of wind and sensors
    patches = _noise(generator, 1.6)
    grain = _noise(generator, 0.8)
    grass = np.clip(0.5 + 0.4 * patches, 0.0, 1.0)
    light = 1.0 + 0.22 * grain
    painted = np.empty((*grass.shape, 3), np.uint8)
    for channel, (of_earth, of_grass) in enumerate(zip(EARTH, GRASS, strict=True)):
        painted[..., channel] = np.clip((of_earth + (of_grass - of_earth) * grass) * light, 0, 255)
    return painted


def _noise(generator: np.random.Generator, steepness: float) -> npt.NDArray[np.float32]:
    """Return periodic noise of variance 1, with amplitudes that fall with this power of the spatial frequency."""
    white = generator.standard_normal((GROUND_PIXELS, GROUND_PIXELS), np.float32)
    frequency = np.hypot(np.fft.fftfreq(GROUND_PIXELS)[:, np.newaxis], np.fft.rfftfreq(GROUND_PIXELS))
    frequency[0, 0] = np.inf  # zero mean
    noise = np.fft.irfft2(np.fft.rfft2(white) / (frequency**steepness).astype(np.float32))
    coloured: npt.NDArray[np.float32] = (noise / noise.std()).astype(np.float32)
    return coloured


def _halved(painted: Image, rows: int, columns: int) -> Image:
    halved: Image = np.asarray(cv2.resize(painted, (columns // 2, rows // 2), interpolation=cv2.INTER_AREA), np.uint8)
    return halved
