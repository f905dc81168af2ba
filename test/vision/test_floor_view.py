# SPDX-License-Identifier: Apache-2.0
"""Views of the emulated AR.Drone's cameras: its world, from its own pose."""

import functools

import cv2
import numpy as np
import pytest

from drone_bridge.ar_drone.cameras import CAMERAS, DOWN, FRONT
from drone_bridge.ar_drone.drone import PICTURE_UNITS
from drone_bridge.ar_drone.flight import ArDroneFlight
from drone_bridge.ar_drone.uvlc import SIZES
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.vision.floor_view import CAMERA_HEIGHT, SKY, FloorView

view = functools.cache(lambda camera: FloorView(camera, 0))


def flight_at(x, y, z, *, roll=0.0, pitch=0.0, yaw=0.0):
    flight = ArDroneFlight()
    flight.position[:] = x, y, z
    flight.roll, flight.pitch, flight.yaw = roll, pitch, yaw
    return flight


def picture(camera, flight):
    return view(camera).draw(flight.position, flight.rotation)


def tag_in(image):
    """Centre of the tag in pixels, or None: its white margin is the brightest part."""
    rows, columns = np.nonzero(image.min(axis=-1) > 240)
    if not len(rows):
        return None
    corners = cv2.boxPoints(cv2.minAreaRect(np.stack([columns, rows], axis=1).astype(np.float32)))
    return corners.mean(axis=0)


def sky_share(image):
    return float((np.abs(image.astype(int) - SKY).max(axis=-1) < 12).mean())


def test_each_camera_has_a_size_that_is_encoded():
    assert {(camera.width, camera.height) for camera in CAMERAS} == set(SIZES)


@pytest.mark.parametrize(
    "pose",
    [
        {"x": 2.0, "y": 0.0, "z": 1.2},
        {"x": 2.4, "y": 0.3, "z": 1.0, "roll": 0.15, "pitch": -0.1, "yaw": 0.1},
        {"x": 2.6, "y": -0.4, "z": 1.5, "roll": -0.2, "pitch": 0.1, "yaw": -0.2},
    ],
)
def test_the_tag_is_in_the_picture_where_navdata_detects_it(pose):
    flight = flight_at(**pose)
    feature = next(block for block in blocks(flight, 0) if type(block).__name__ == "VisionDetect").features[0]
    # The camera is above the drone's feet, the origin of navdata.
    lower = flight_at(**{**pose, "z": pose["z"] - CAMERA_HEIGHT})
    column, row = tag_in(picture(FRONT, lower))
    assert column == pytest.approx(feature.xc / PICTURE_UNITS * FRONT.width, abs=1.0)
    assert row == pytest.approx(feature.yc / PICTURE_UNITS * FRONT.height, abs=1.0)


@pytest.mark.parametrize("pose", [{"x": 4.5, "y": 0.0, "z": 1.2}, {"x": 2.0, "y": 0.0, "z": 1.2, "yaw": 3.0}])
def test_a_tag_behind_the_camera_is_not_in_the_picture(pose):
    assert tag_in(picture(FRONT, flight_at(**pose))) is None


def test_forward_camera_sees_sky_above_the_horizon_and_banks():
    level = picture(FRONT, flight_at(-8.0, 0.0, 1.0))
    assert sky_share(level[:110]) > 0.97
    assert sky_share(level[150:]) < 0.05
    right_down = picture(FRONT, flight_at(-8.0, 0.0, 1.0, roll=0.3))  # so that the horizon rises to the right
    assert sky_share(right_down[:, :60]) > sky_share(level[:, :60]) > sky_share(right_down[:, -60:])
    nose_down = picture(FRONT, flight_at(-8.0, 0.0, 1.0, pitch=0.3))
    assert sky_share(nose_down) < sky_share(level) - 0.1


def test_ground_runs_down_the_downward_picture_in_forward_flight():
    pixels, height = 24, 2.0
    step = pixels * (height + CAMERA_HEIGHT) / DOWN.focal_length
    before, after = (picture(DOWN, flight_at(x, 0.0, height)).astype(int) for x in (0.0, step))
    assert np.abs(before[:-pixels] - after[pixels:]).mean() < 3
    assert np.abs(before - after).mean() > 8
    assert sky_share(before) < 0.01


def test_a_drone_on_the_ground_sees_as_well():
    for camera in CAMERAS:
        image = picture(camera, flight_at(0.0, 0.0, 0.0))
        assert image.shape == (camera.height, camera.width, 3)
        assert image[camera.height * 3 // 4 :].std() > 3
