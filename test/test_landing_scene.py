# SPDX-License-Identifier: Apache-2.0
"""What the drone's camera sees, against the geometry of a pinhole."""

import math

import cv2
import numpy as np
import pytest
from markers import detect

from drone_bridge.telemetry.emulator.camera import DownwardCamera
from drone_bridge.telemetry.emulator.flight import rotation_from_euler
from drone_bridge.telemetry.emulator.pad import (
    INK,
    LARGE_MARKER,
    PAD_HEIGHT,
    PAD_SIDE,
    PLATE,
    SMALL_MARKER,
    draw_marker,
    draw_pad,
)
from drone_bridge.telemetry.emulator.scene import (
    GROUND_SIDE,
    ROVER_FRONT,
    ROVER_LENGTH,
    ROVER_SIDES,
    ROVER_TOP,
    ROVER_WIDTH,
    Scene,
    Surface,
    paint_ground,
)
from drone_bridge.telemetry.emulator.vehicle import jpeg

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("attitude", ATTITUDES)
def test_pixels_match_a_pinhole_camera(attitude):
    rotation = rotation_from_euler(*attitude)
    towards = np.array([0.7, -0.4, -3.0])
    column, row, depth = CAMERA.view(rotation) @ towards
    assert (column / depth, row / depth) == pytest.approx(pixel(np.zeros(3), rotation, towards))


def test_it_sees_up_to_the_edges_and_nothing_behind():
    half_width, half_height = math.tan(math.radians(30)), math.tan(math.radians(30)) * 240 / 320
    for share, seen in ((0.99, True), (1.01, False)):
        assert CAMERA.sees(np.eye(3), np.array([0, share * half_width, -1])) is seen
        assert CAMERA.sees(np.eye(3), np.array([share * half_height, 0, -1])) is seen
    assert not CAMERA.sees(np.eye(3), np.array([0, 0, 1.0]))


# Surfaces and the ground


QUARTERS = {(1, 1): (255, 0, 0), (1, -1): (0, 255, 0), (-1, 1): (0, 0, 255), (-1, -1): (255, 255, 255)}


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("height", [0.5, 3.0, 9.0])
def test_colours_are_where_they_were_painted(attitude, height):
    painted = np.zeros((400, 400, 3), np.uint8)
    for (front, left), colour in QUARTERS.items():
        painted[slice(0, 200) if front > 0 else slice(200, 400), slice(0, 200) if left > 0 else slice(200, 400)] = (
            colour
        )
    surface = Surface(painted, 8.0, 8.0)
    rotation = rotation_from_euler(*attitude)
    image = np.full((240, 320, 3), 77, np.uint8)
    position = np.array([0.2, -0.1, height])
    surface.show(image, CAMERA.view(rotation), -position, CAMERA.focal_length)
    looked_at = set()
    around = 0.4 * height * np.linspace(-1, 1, 12)
    for x in around:
        for y in around:
            column, row = pixel(position, rotation, (x, y, 0.0))
            if min(abs(x), abs(y)) > 0.03 * height and 0 <= column <= 319 and 0 <= row <= 239:
                assert colour_at(image, (column, row)) == QUARTERS[np.sign(x), np.sign(y)]
                looked_at.add(QUARTERS[np.sign(x), np.sign(y)])
    assert len(looked_at) >= (4 if height > 1 else 1)


def test_beyond_a_surface_that_does_not_repeat_nothing_is_drawn():
    image = np.full((240, 320, 3), 77, np.uint8)
    Surface(np.zeros((100, 100, 3), np.uint8), 1.0, 1.0).show(
        image, CAMERA.view(np.eye(3)), np.array([0, 0, -5.0]), CAMERA.focal_length
    )
    assert (image[:, :100] == 77).all()
    assert (image[119, 159] == 0).all()
    size = 277.1 / 5  # pixels
    assert math.sqrt(np.count_nonzero(image[..., 0] == 0)) == pytest.approx(size, abs=1.5)  # edges depend on OpenCV


def test_the_ground_shows_what_is_painted_there(scene):
    painted = cv2.GaussianBlur(paint_ground(1), (0, 0), 1.0, borderType=cv2.BORDER_REFLECT)
    position = np.array([1.0, -2.0, 2.5])
    rotation = rotation_from_euler(0.1, -0.1, 0.7)
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


def test_the_ground_has_no_edge(scene):
    here = scene.render(np.array([0.3, 0.2, 3.0]), np.eye(3), FAR_AWAY)
    there = scene.render(np.array([0.3 + 3 * GROUND_SIDE, 0.2 - 5 * GROUND_SIDE, 3.0]), np.eye(3), FAR_AWAY)
    assert np.abs(here.astype(int) - there).mean() < 1
    seam = scene.render(np.array([GROUND_SIDE / 2, 0.0, 3.0]), np.eye(3), FAR_AWAY).astype(int)
    steps = np.abs(np.diff(seam, axis=0)).mean(axis=(1, 2))
    assert steps[119] < 1.5 * steps.mean(), "opposite edges of the painting fit together"


def test_the_ground_has_enough_to_follow_and_repeats_with_its_seed(scene):
    image = scene.render(np.array([0.0, 0.0, 5.0]), np.eye(3), FAR_AWAY)
    corners = cv2.goodFeaturesToTrack(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), 200, 0.05, 8)
    assert len(corners) > 100
    assert np.array_equal(paint_ground(1), paint_ground(1))
    assert not np.array_equal(paint_ground(1), paint_ground(2))


def test_optical_flow_follows_the_ground(scene):
    height, moved = 4.0, 0.1
    before, after = (
        cv2.cvtColor(scene.render(np.array([x, 0.0, height]), np.eye(3), FAR_AWAY), cv2.COLOR_BGR2GRAY)
        for x in (0.0, moved)
    )
    points = cv2.goodFeaturesToTrack(before, 100, 0.05, 8)
    found, status, _ = cv2.calcOpticalFlowPyrLK(before, after, points, None)
    flow = np.median((found - points)[status == 1], axis=0)
    assert flow == pytest.approx([0, CAMERA.focal_length * moved / height], abs=0.3)


# The rover and the pad


@pytest.mark.parametrize("attitude", ATTITUDES)
def test_the_pad_is_where_it_belongs(scene, attitude):
    rotation = rotation_from_euler(*attitude)
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


def test_the_rovers_sides_are_seen_from_beside(scene):
    position = np.array([0.0, 1.5, 2.0])
    image = scene.render(position, np.eye(3), ORIGIN)
    assert colour_at(image, pixel(position, np.eye(3), (0.0, ROVER_WIDTH / 2, 0.15))) == ROVER_SIDES
    beside = colour_at(image, pixel(position, np.eye(3), (0.0, ROVER_WIDTH / 2 + 0.2, 0.0)))
    assert beside not in (ROVER_SIDES, ROVER_TOP)


@pytest.mark.parametrize("height", [PAD_HEIGHT + 0.1, PAD_HEIGHT + 0.02, PAD_HEIGHT, 0.1, 0.02])
@pytest.mark.parametrize("place", [(0.0, 0.0), (0.6, 0.5), (2.0, 0.0)])
@pytest.mark.parametrize("attitude", [(0, 0, 0), (0.5, -0.5, 1.0)])
def test_every_pose_gives_an_image(scene, place, height, attitude):
    image = scene.render(np.array([*place, height]), rotation_from_euler(*attitude), ORIGIN)
    assert image.shape == (240, 320, 3)


def test_the_small_marker_lies_in_the_white_middle_of_the_large_one():
    cells = draw_marker(LARGE_MARKER.identity, 6)
    assert (cells[2:4, 2:4] == 255).all()
    cell = LARGE_MARKER.side / 6
    assert SMALL_MARKER.side / 6 * 2 <= 2 * cell - SMALL_MARKER.side, "a quiet zone of a cell on both sides"
    assert cell <= (PAD_SIDE - LARGE_MARKER.side) / 2


def test_the_pad_looks_the_same_with_an_older_opencv(monkeypatch):
    markers = [marker.identity for marker in (LARGE_MARKER, SMALL_MARKER)]
    drawn = [draw_marker(identity, 60) for identity in markers]
    newer = getattr(cv2.aruco, "generateImageMarker", None)
    monkeypatch.setattr(cv2.aruco, "drawMarker", newer or cv2.aruco.drawMarker, raising=False)
    monkeypatch.delattr(cv2.aruco, "generateImageMarker", raising=False)
    assert np.array_equal([draw_marker(identity, 60) for identity in markers], drawn)


def test_the_pad_is_painted_with_its_front_up():
    found = detect(draw_pad(500))
    corners = found[SMALL_MARKER.identity]  # from the marker's upper left corner clockwise
    side = SMALL_MARKER.side / PAD_SIDE * 500
    expected = 249.5 + side / 2 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    assert corners == pytest.approx(expected, abs=1)


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
        rotation = rotation_from_euler(*tilt, generator.uniform(-math.pi, math.pi))
        file = jpeg(scene.render(position, rotation, ORIGIN))
        found = detect(cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_GRAYSCALE))
        assert set(found) <= {LARGE_MARKER.identity, SMALL_MARKER.identity}, "nothing else looks like a marker"
        seen += bool(found)
        for corners in found.values():
            centre = corners.mean(axis=0)
            errors += np.abs(centre - pixel(position, rotation, (0, 0, PAD_HEIGHT))).max() > 2.5
    assert seen >= 0.9 * trials
    assert errors <= 1  # a detector before OpenCV 4.7 may be led astray once
