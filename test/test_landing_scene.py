# SPDX-License-Identifier: Apache-2.0
"""What the drone's camera sees, against the geometry of a pinhole."""

import math

import cv2
import numpy as np
import pytest

from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.telemetry.emulator.scene import (
    INK,
    LARGE_MARKER,
    PAD_HEIGHT,
    PLATE,
    ROVER_FRONT,
    ROVER_LENGTH,
    ROVER_TOP,
    SMALL_MARKER,
    DownwardCamera,
    Scene,
    draw_marker,
)

CAMERA = DownwardCamera()
ATTITUDES = [(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (-0.15, 0.1, -2.5)]


@pytest.fixture(scope="module")
def scene():
    return Scene(CAMERA, seed=1)


def pixel(position, rotation, point):
    """The pixel of a point in the world, from first principles: through the body, to tangents, to pixels."""
    forward, left, up = rotation.T @ (np.array(point, dtype=float) - position)
    focal = 160 / math.tan(math.radians(30))
    return 159.5 - focal * left / -up, 119.5 - focal * forward / -up


def colour_at(image, where):
    column, row = np.rint(where).astype(int)
    return tuple(image[row, column].tolist())


@pytest.mark.parametrize("attitude", ATTITUDES)
def test_the_pad_is_where_it_belongs(scene, attitude):
    rotation = rotation_from_angles(*attitude)
    rover = np.array([3.0, -1.0])
    position = np.array([3.2, -0.9, 4.0])
    image = scene.render(position, rotation, rover)

    def on_rover(x, y):
        return colour_at(image, pixel(position, rotation, (rover[0] + x, rover[1] + y, PAD_HEIGHT)))

    plate, ink = (PLATE,) * 3, (INK,) * 3
    for x, y in ((0.43, 0.43), (-0.43, 0.43), (-0.43, -0.43), (0.43, -0.43), (0.43, 0.0)):
        assert on_rover(x, y) == pytest.approx(plate, abs=12)
    for x, y in ((0.30, 0.30), (-0.30, 0.30), (-0.30, -0.30), (0.30, -0.30)):
        assert on_rover(x, y) == pytest.approx(ink, abs=12), "the border of the large marker"
    assert on_rover(ROVER_LENGTH / 2 - 0.04, 0.2) == pytest.approx(ROVER_FRONT, abs=12)
    assert on_rover(-ROVER_LENGTH / 2 + 0.07, 0.2) == pytest.approx(ROVER_TOP, abs=12)


def test_the_pad_looks_the_same_with_an_older_opencv(monkeypatch):
    markers = [marker.identity for marker in (LARGE_MARKER, SMALL_MARKER)]
    drawn = [draw_marker(identity, 60) for identity in markers]
    newer = getattr(cv2.aruco, "generateImageMarker", None)
    monkeypatch.setattr(cv2.aruco, "drawMarker", newer or cv2.aruco.drawMarker, raising=False)
    monkeypatch.delattr(cv2.aruco, "generateImageMarker", raising=False)
    assert np.array_equal([draw_marker(identity, 60) for identity in markers], drawn)
