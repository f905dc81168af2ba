# SPDX-License-Identifier: Apache-2.0
"""What the emulated drone's camera sees: endless textured ground, and the top of the rover with the landing pad.

Every surface is flat, so what the camera sees of it is a perspective warp of what is painted on it.

The camera looks down. Pixels count columns to the right and rows down, with pixel centres at whole numbers. The top of
the image is forward, so columns run to the body's right (-y) and rows backward (-x); it looks along the body's -z.

The pad is a white plate with two ArUco markers around its middle, one inside the other. The large one is found from
afar, and the small one from close by, when the large one no longer fits into the image. The four inner cells of the
large marker are white, and the small one lies in the middle of them, so that neither interferes with the other.
OpenCV's detector reports only one of two nested markers: below 3 m mostly the small one, above 4 m the large one.
Lengths are metres in the pad's frame: origin in its middle, x forward, y left, as the rover drives; z up.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.vision.markers import MarkerParameters

Colour = tuple[int, int, int]  # blue, green, red
Image = npt.NDArray[np.uint8]  # rows x columns (x 3: blue, green, red), as OpenCV has them

#: Takes vectors of the body frame to the optical frame: x right, y down the image, z into the picture.
OPTICAL_FROM_BODY: Matrix = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


@dataclass(frozen=True, slots=True)
class DownwardCamera:
    """A pinhole in the middle of the drone, with square pixels."""

    width: int = 320  # pixels
    height: int = 240  # pixels
    field_of_view: float = 60.0  # degrees, horizontal, from edge to edge

    @property
    def focal_length(self) -> float:
        """In pixels."""
        return self.width / 2 / math.tan(math.radians(self.field_of_view) / 2)

    @property
    def matrix(self) -> Matrix:
        """Projects directions in the optical frame to homogeneous pixels."""
        focal = self.focal_length
        return np.array([[focal, 0, (self.width - 1) / 2], [0, focal, (self.height - 1) / 2], [0, 0, 1.0]])

    def view(self, rotation: Matrix) -> Matrix:
        """Return the projection of vectors from the drone, in the world frame, to homogeneous pixels.

        `rotation` takes the body frame to the world frame. The third homogeneous coordinate is the depth, in m.
        """
        view: Matrix = self.matrix @ OPTICAL_FROM_BODY @ rotation.T
        return view

    def sees(self, rotation: Matrix, towards: Vector) -> bool:
        """Return whether something in that direction (from the drone, world frame) is in the image."""
        column, row, depth = self.view(rotation) @ towards
        if depth <= 0:
            return False
        column, row = column / depth, row / depth
        return bool(-0.5 <= column <= self.width - 0.5 and -0.5 <= row <= self.height - 0.5)


# The pad.


PAD_SIDE = 1.0  # m
PAD_HEIGHT = 0.30  # m: the plate's surface above the ground, on top of the rover
#: Cells of the large one are 0.12 m wide; the white square inside it measures 0.24 m.
MARKERS = MarkerParameters()

PLATE = 235  # of 255: the white of the plate and of the markers
INK = 20


def draw_marker(identity: int, pixels: int) -> Image:
    """Return a marker without margin, pixels x pixels, 0 and 255."""
    aruco: Any = cv2.aruco
    draw = aruco.generateImageMarker if hasattr(aruco, "generateImageMarker") else aruco.drawMarker  # before 4.7
    marker: Image = draw(aruco.getPredefinedDictionary(getattr(aruco, MARKERS.marker_dictionary)), identity, pixels)
    return marker


def draw_pad(pixels: int) -> Image:
    """Return the plate seen from above, pixels x pixels, grey; its front (+x) is the top row, its left the left."""
    plate = np.full((pixels, pixels), PLATE, np.uint8)
    for identity, metres in zip(MARKERS.marker_ids, MARKERS.marker_sides, strict=True):
        side = round(metres / PAD_SIDE * pixels)
        printed = draw_marker(identity, side)
        first = (pixels - side) // 2
        plate[first : first + side, first : first + side] = np.where(printed > 127, PLATE, INK)
    return plate


# The scene.


GROUND_SIDE = 16.0  # m, after which the ground repeats itself: more than is seen at once from 13 m
GROUND_PIXELS = 2048
ROVER_LENGTH = 1.3  # m, along x
ROVER_WIDTH = 1.1  # m, along y
ROVER_PIXELS_PER_METRE = 800

EARTH: Colour = (62, 88, 112)
GRASS: Colour = (70, 128, 96)
ROVER_TOP: Colour = (92, 78, 70)
ROVER_FRONT: Colour = (40, 140, 235)  # a stripe, to tell where forward is
STRIPE = 0.08  # m

SMALLEST_LEVEL = 16  # pixels
JPEG_QUALITY = 70  # of 100


class Surface:
    """A horizontal rectangle with an image painted on it.

    It is a mipmap: kept in several sizes, each half the previous one, and sampled in the one whose pixels are about as
    large as the camera's, so that nothing flickers.
    """

    def __init__(self, painted: Image, length: float, width: float, repeats: bool = False) -> None:
        """`painted` has the front (+x) in its top row and the left in its left column; `length` is along x. In m."""
        self._levels = [painted]
        while min(self._levels[-1].shape[:2]) >= 2 * SMALLEST_LEVEL:
            rows, columns = self._levels[-1].shape[:2]
            self._levels.append(_halved(self._levels[-1], rows, columns))
        self._length = length
        self._width = width
        self._repeats = repeats

    def show(self, image: Image, view: Matrix, centre: Vector, focal_length: float) -> None:
        """Draw the surface; `centre` is its middle as seen from the camera, in the world frame, in m."""
        footprint = -float(centre[2]) / focal_length
        finest = self._length / self._levels[0].shape[0]
        wanted = math.floor(math.log2(max(footprint / finest, 1.0)))
        painted = self._levels[min(wanted, len(self._levels) - 1)]
        rows, columns = painted.shape[:2]
        dx, dy = self._length / rows, self._width / columns
        # Columns and rows of the painting to where they are, from the camera.
        place = np.array(
            [
                [0.0, -dx, centre[0] + self._length / 2 - dx / 2],
                [-dy, 0.0, centre[1] + self._width / 2 - dy / 2],
                [0.0, 0.0, centre[2]],
            ]
        )
        cv2.warpPerspective(
            painted,
            view @ place,
            (image.shape[1], image.shape[0]),
            dst=image,
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_WRAP if self._repeats else cv2.BORDER_TRANSPARENT,
        )


class Scene:
    """The ground, which depends on the seed, and the rover."""

    def __init__(self, camera: DownwardCamera, seed: int = 0) -> None:
        self.camera = camera
        self._ground = _ground(seed)
        self._top = Surface(paint_rover(), ROVER_LENGTH, ROVER_WIDTH)

    def render(self, position: Vector, rotation: Matrix, rover: Vector) -> Image:
        """Return a new image.

        Args:
            position: of the camera in the world frame, m, above what it looks at.
            rotation: takes the body frame to the world frame.
            rover: where the middle of the rover stands on the ground, x and y in m.
        """
        camera = self.camera
        view = camera.view(rotation)
        image = np.empty((camera.height, camera.width, 3), np.uint8)
        self._ground.show(image, view, -position, camera.focal_length)
        if position[2] > PAD_HEIGHT:
            top = np.array([rover[0], rover[1], PAD_HEIGHT]) - position
            self._top.show(image, view, top, camera.focal_length)
        return image


def jpeg(image: Image) -> bytes:
    """Return an image (rows x columns x 3: blue, green, red) as a JPEG file."""
    encoded, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not encoded:
        raise ValueError(f"an image of {image.shape} can't be made a JPEG")
    return data.tobytes()


@functools.lru_cache(maxsize=2)
def _ground(seed: int) -> Surface:
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


def paint_rover() -> Image:
    """Return the rover's top from above: the pad, and a stripe along the front edge."""
    scale = ROVER_PIXELS_PER_METRE
    painted = np.full((round(ROVER_LENGTH * scale), round(ROVER_WIDTH * scale), 3), ROVER_TOP, np.uint8)
    painted[: round(STRIPE * scale)] = ROVER_FRONT
    side = round(PAD_SIDE * scale)
    row, column = (painted.shape[0] - side) // 2, (painted.shape[1] - side) // 2
    painted[row : row + side, column : column + side] = draw_pad(side)[..., np.newaxis]
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
