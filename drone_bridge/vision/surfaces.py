# SPDX-License-Identifier: Apache-2.0
"""Surface: a flat, painted rectangle in an emulated world, as a camera sees it, and the ground that vehicles fly over.

What a pinhole sees of a plane is a perspective warp of what is painted on it.
"""

from __future__ import annotations

import functools
import math

import cv2
import numpy as np
import numpy.typing as npt

from drone_bridge.motion.matrices import Matrix, Triple, Vector

Colour = tuple[int, int, int]  # blue, green, red
Image = npt.NDArray[np.uint8]  # rows x columns (x 3: blue, green, red), as OpenCV has them

#: Directions in the world of a painting's rows, from the top on, and of its columns, from the left on.
LYING: tuple[Triple, Triple] = ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0))  # seen from above: +x is its top, +y its left
FACING_BACK: tuple[Triple, Triple] = ((0.0, 0.0, -1.0), (0.0, -1.0, 0.0))  # upright, seen in the direction of +x

SMALLEST_LEVEL = 16  # pixels
NEAREST_M = 0.01

GROUND_SIDE = 16.0  # m, after which the ground repeats itself: more than is seen at once from 13 m
GROUND_PIXELS = 2048
EARTH: Colour = (62, 88, 112)
GRASS: Colour = (70, 128, 96)


class Surface:
    """A rectangle with an image painted on it.

    It is a mipmap: kept in several sizes, each half the previous one, and sampled in the one whose pixels are about as
    large as the camera's, so that nothing flickers.
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
        """Prepare the levels.

        Args:
            painted: its image.
            length: along the image's rows, m.
            width: along the image's columns, m.
            repeats: whether it goes on in all directions, again and again.
            directions: of rows and columns in the world.
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
            image: to draw into.
            view: as of `DrawnCamera.view`.
            centre: the surface's middle as seen from the camera, in the world frame, m.
            focal_length: the camera's, pixels.
            coarser: by how much the drawn level is coarser than is right for the nearest point, where the camera looks
                along the surface.
        """
        # Both axes are turned the same way, so the normal points away from who can see the painting.
        footprint = coarser * max(float(self._normal @ centre), NEAREST_M) / focal_length
        finest = self._length / self._levels[0].shape[0]
        wanted = math.floor(math.log2(max(footprint / finest, 1.0)))
        painted = self._levels[min(wanted, len(self._levels) - 1)]
        rows, columns = painted.shape[:2]
        dx, dy = self._length / rows, self._width / columns
        first = centre - self._down * (self._length / 2 - dx / 2) - self._right * (self._width / 2 - dy / 2)
        # Columns and rows of the painting to where they are, from the camera.
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
        """Return whether all of it is ahead of the camera and its painted side turned there, so that it can be drawn.

        That which repeats never is: of it a camera sees a part, up to the horizon.
        """
        reach, across = self._down * self._length / 2, self._right * self._width / 2
        corners = (centre + way * reach + side * across for way in (-1, 1) for side in (-1, 1))
        is_turned_there = float(self._normal @ centre) > NEAREST_M
        return is_turned_there and all(float(view[2] @ corner) > NEAREST_M for corner in corners)


@functools.lru_cache(maxsize=2)
def ground(seed: int) -> Surface:
    """Return the ground, painted once for all vehicles of a process that share a seed: it takes a moment."""
    return Surface(paint_ground(seed), GROUND_SIDE, GROUND_SIDE, repeats=True)


def paint_ground(seed: int) -> Image:
    """Return the ground: patches of grass on earth and grain of every size, the same at opposite edges."""
    generator = np.random.default_rng([seed, 2])  # not the noise of the wind or of the sensors
    patches = _noise(generator, 1.6)
    grain = _noise(generator, 0.8)
    grass = np.clip(0.5 + 0.4 * patches, 0.0, 1.0)
    light = 1.0 + 0.22 * grain
    painted = np.empty((*grass.shape, 3), np.uint8)
    for channel, (of_earth, of_grass) in enumerate(zip(EARTH, GRASS, strict=True)):
        painted[..., channel] = np.clip((of_earth + (of_grass - of_earth) * grass) * light, 0, 255)
    return painted


def _noise(generator: np.random.Generator, steepness: float) -> npt.NDArray[np.float32]:
    """Return periodic noise of variance 1, whose amplitudes fall with this power of the spatial frequency."""
    white = generator.standard_normal((GROUND_PIXELS, GROUND_PIXELS), np.float32)
    frequency = np.hypot(np.fft.fftfreq(GROUND_PIXELS)[:, np.newaxis], np.fft.rfftfreq(GROUND_PIXELS))
    frequency[0, 0] = np.inf  # so that the mean is zero
    noise = np.fft.irfft2(np.fft.rfft2(white) / (frequency**steepness).astype(np.float32))
    coloured: npt.NDArray[np.float32] = (noise / noise.std()).astype(np.float32)
    return coloured


def _halved(painted: Image, rows: int, columns: int) -> Image:
    halved: Image = np.asarray(cv2.resize(painted, (columns // 2, rows // 2), interpolation=cv2.INTER_AREA), np.uint8)
    return halved
