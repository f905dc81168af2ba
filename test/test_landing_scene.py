# SPDX-License-Identifier: Apache-2.0
"""What the drone's camera sees, against the geometry of a pinhole."""

import math

import cv2
import numpy as np
import pytest
from markers import detect

from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.telemetry.emulator.scene import (
    GROUND_SIDE,
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
    jpeg,
    paint_ground,
)

CAMERA = DownwardCamera()
FAR_AWAY = np.array([100.0, 100.0])
ORIGIN = np.zeros(2)
ATTITUDES = [(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 1), (-0.15, 0.1, -2.5)]


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


# The camera


def test_the_top_of_the_image_is_forward_and_its_left_is_left():
    view = CAMERA.view(np.eye(3))

    def seen(*towards):
        column, row, depth = view @ towards
        return column / depth, row / depth

    assert seen(0, 0, -2) == pytest.approx((159.5, 119.5))
    assert seen(0.5, 0, -2)[1] < 119
    assert seen(0, 0.5, -2)[0] < 159
    edge = 2 * math.tan(math.radians(30))
    assert seen(0, edge, -2) == pytest.approx((-0.5, 119.5))
    assert seen(0, -edge, -2) == pytest.approx((319.5, 119.5))


# Surfaces and the ground


def test_the_ground_shows_what_is_painted_there(scene):
    painted = cv2.GaussianBlur(paint_ground(1), (0, 0), 1.0, borderType=cv2.BORDER_REFLECT)
    position = np.array([1.0, -2.0, 2.5])
    rotation = rotation_from_angles(0.1, -0.1, 0.7)
    image = scene.render(position, rotation, FAR_AWAY)
    differences = []
    for x in np.linspace(0, 2, 9):
        for y in np.linspace(-3, -1, 9):
            column, row = pixel(position, rotation, (x, y, 0.0))
            if 0 <= column <= 319 and 0 <= row <= 239:
                scale = painted.shape[0] / GROUND_SIDE
                there = painted[round((GROUND_SIDE / 2 - x) * scale), round((GROUND_SIDE / 2 - y) * scale)]
                differences.append(np.array(colour_at(image, (column, row)), float) - there)
    assert len(differences) > 40
    assert np.abs(differences).mean() < 0.5 * painted[..., 1].std()


# The rover and the pad


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


HEIGHTS = [0.4, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]  # m above the pad


@pytest.mark.parametrize("height", HEIGHTS)
def test_opencv_finds_the_pad_from_every_height(scene, height):
    """Through the JPEG, tilted by up to 0.2 rad, and aside as far as one is who descends."""
    generator = np.random.default_rng(5)
    seen = errors = 0
    trials = 20
    for _ in range(trials):
        aside = generator.uniform(-0.08, 0.08, 2) * height
        position = np.array([*aside, PAD_HEIGHT + height])
        tilt = generator.uniform(-0.2, 0.2, 2) if height > 0.5 else generator.uniform(-0.1, 0.1, 2)
        rotation = rotation_from_angles(*tilt, generator.uniform(-math.pi, math.pi))
        file = jpeg(scene.render(position, rotation, ORIGIN))
        found = detect(cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_GRAYSCALE))
        assert set(found) <= {LARGE_MARKER.identity, SMALL_MARKER.identity}, "nothing else looks like a marker"
        seen += bool(found)
        for corners in found.values():
            centre = corners.mean(axis=0)
            errors += np.abs(centre - pixel(position, rotation, (0, 0, PAD_HEIGHT))).max() > 2.5
    assert seen >= 0.9 * trials
    assert errors <= 1  # a detector before OpenCV 4.7 may be led astray once
