# SPDX-License-Identifier: Apache-2.0
"""Detection of the pad in images of the emulator's camera, and in other images."""

import functools
import math

import cv2
import numpy as np
import pytest

from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.telemetry.vehicle.emulator.scene import CAMERA, JPEG_QUALITY, MARKERS, PAD_HEIGHT, LandingScene
from drone_bridge.vision.drawn_marker import draw_marker
from drone_bridge.vision.jpegs import jpeg_of_rgb
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import MarkerParameters
from drone_bridge.vision.pinhole import Pinhole

PINHOLE = Pinhole(
    CAMERA.width,
    CAMERA.height,
    CAMERA.focal_length,
    CAMERA.focal_length,
    (CAMERA.width - 1) / 2,
    (CAMERA.height - 1) / 2,
)
DETECTOR = MarkerDetector(MarkerParameters())
scene = functools.cache(lambda seed=0: LandingScene(CAMERA, seed))  # to paint the ground takes long


def decoded(data):
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def photograph(offset, angles=(0.0, 0.0, 0.0)):
    """Return the image of a drone with the pad at this offset (m, level axes), after JPEG compression."""
    position = np.array([0.0, 0.0, PAD_HEIGHT]) - np.array(offset)
    image = scene().render(position, rotation_from_angles(*angles), np.zeros(2))
    return decoded(jpeg_of_rgb(image[..., ::-1], JPEG_QUALITY))


def located(offset, angles=(0.0, 0.0, 0.0)):
    markers = DETECTOR.detect(photograph(offset, angles))
    return DETECTOR.locate(markers, PINHOLE, rotation_from_angles(*angles))


@pytest.mark.parametrize(
    "offset",
    [(0, 0, -0.4), (0.05, -0.08, -0.5), (0.2, 0.1, -1), (-0.3, 0.5, -2), (0.3, -0.6, -3), (0, 0, -5), (0, 0, -7)],
)
def test_an_image_shows_where_the_pad_is(offset):
    view = located(offset)
    error = np.abs(view.offset - offset)
    assert error[:2].max() < max(3 * view.deviation, 0.01)
    assert error[2] < max(3 * view.vertical_deviation, 0.01)
    assert view.deviation < 0.03 * -offset[2]


@pytest.mark.parametrize("angles", [(0.2, 0, 0), (0, -0.2, 0), (0.1, 0.15, 1.0), (-0.1, 0.1, -2.5)])
def test_tilt_and_heading_of_the_drone_are_taken_out(angles):
    offset = np.array([0.1, 0.15, -2.5])
    view = located(offset, angles)
    assert view.offset[:2] == pytest.approx(offset[:2], abs=0.02)
    assert view.offset[2] == pytest.approx(offset[2], abs=0.1)


def test_an_impossible_attitude_is_noticed():
    markers = DETECTOR.detect(photograph((0.0, 0.0, -1.0)))
    assert DETECTOR.locate(markers, PINHOLE, rotation_from_angles(0.0, 0.0, 0.0)) is not None
    assert DETECTOR.locate(markers, PINHOLE, rotation_from_angles(0.6, 0.5, 0.0)) is None
    assert DETECTOR.locate(markers, PINHOLE, rotation_from_angles(math.pi, 0.0, 0.0)) is None  # on its back


def test_markers_of_others_and_markers_seen_twice_do_not_count():
    image = photograph((0.0, 0.0, -4.0))
    assert DETECTOR.detect(image)
    stranger = MarkerDetector(MarkerParameters(marker_ids=(7,), marker_sides=(0.5,)))
    assert stranger.detect(image) == {}
    two = np.hstack([image, image])
    assert not DETECTOR.detect(two).keys() & DETECTOR.detect(image).keys()


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 300, 3), (240, 320, 3)])
def test_any_image_is_handled(shape):
    generator = np.random.default_rng(0)
    for low, high in ((0, 1), (255, 256), (0, 256)):
        assert DETECTOR.detect(generator.integers(low, high, shape, np.uint8)) == {}


def test_the_pad_looks_the_same_with_an_older_opencv(monkeypatch):
    identities = MarkerParameters().marker_ids
    drawn = [draw_marker(MARKERS.marker_dictionary, identity, 60) for identity in identities]
    newer = getattr(cv2.aruco, "generateImageMarker", None)
    monkeypatch.setattr(cv2.aruco, "drawMarker", newer or cv2.aruco.drawMarker, raising=False)
    monkeypatch.delattr(cv2.aruco, "generateImageMarker", raising=False)
    assert np.array_equal([draw_marker(MARKERS.marker_dictionary, identity, 60) for identity in identities], drawn)
