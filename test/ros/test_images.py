# SPDX-License-Identifier: Apache-2.0
"""Images: memory that becomes a message without a copy, in this version of rclpy."""

import math
from array import array

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image

from drone_bridge.ros.topics.images import Rgb8Image, pinhole_camera_info

WIDTH, HEIGHT = 160, 120
SIZE = 3 * WIDTH * HEIGHT


def pattern(seed, size=SIZE):
    return array("B", np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes())


def test_an_image_says_how_it_is_laid_out():
    stamp = Time(sec=3, nanosec=4)
    image = Rgb8Image(WIDTH, HEIGHT, "left_camera_optical_frame").filled(pattern(0), stamp)
    assert (image.width, image.height, image.step) == (WIDTH, HEIGHT, 3 * WIDTH)
    assert (image.encoding, image.is_bigendian) == ("rgb8", 0)
    assert (image.header.frame_id, image.header.stamp) == ("left_camera_optical_frame", stamp)


def test_pixels_become_the_message_without_a_copy():
    pixels = pattern(1)
    image = Rgb8Image(WIDTH, HEIGHT, "camera").filled(pixels, Time())
    assert image._data is pixels
    assert image.data is pixels
    pixels[5] ^= 0xFF
    assert image.data[5] == pixels[5]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_pixels_in_other_memory_are_copied(kind):
    pixels = pattern(2)
    image = Rgb8Image(WIDTH, HEIGHT, "camera").filled(kind(pixels.tobytes()), Time())
    assert image.data == pixels


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_pixels_of_another_size_are_refused(size):
    image = Rgb8Image(WIDTH, HEIGHT, "camera")
    with pytest.raises(ValueError, match=f"{size} bytes are not an image of 120 rows of 480 bytes"):
        image.filled(array("B", bytes(size)), Time())


def test_a_message_around_shared_memory_serializes_like_any_other():
    pixels = pattern(3)
    image = Rgb8Image(WIDTH, HEIGHT, "camera").filled(pixels, Time())
    ordinary = Image(width=WIDTH, height=HEIGHT, encoding="rgb8", step=3 * WIDTH, data=pixels)
    ordinary.header.frame_id = "camera"
    # Not byte by byte: gaps between fields have arbitrary content.
    assert len(serialize_message(image)) == len(serialize_message(ordinary))
    received = deserialize_message(serialize_message(image), Image)
    assert received == ordinary
    assert received.data == pixels


# The pinhole.


def project(info, point):
    """Pixel coordinates, from the centre of the first pixel, of a point in the left optical frame."""
    u, v, w = np.array(info.p).reshape(3, 4) @ [*point, 1]
    return u / w, v / w


def pinhole(baseline=0.0):
    focal_x = WIDTH / 2 / math.tan(math.radians(120) / 2)
    focal_y = HEIGHT / 2 / math.tan(math.radians(90) / 2)
    return pinhole_camera_info(WIDTH, HEIGHT, focal_x=focal_x, focal_y=focal_y, frame_id="camera", baseline=baseline)


def test_the_axis_meets_the_centre_of_the_image():
    assert project(pinhole(), (0, 0, 5)) == pytest.approx(((WIDTH - 1) / 2, (HEIGHT - 1) / 2))


@pytest.mark.parametrize(("side", "edge"), [(1, WIDTH - 0.5), (-1, -0.5)])
def test_half_of_the_horizontal_view_ends_at_the_outer_edge_of_a_pixel(side, edge):
    assert project(pinhole(), (side * math.tan(math.radians(60)), 0, 1))[0] == pytest.approx(edge)


@pytest.mark.parametrize(("side", "edge"), [(1, HEIGHT - 0.5), (-1, -0.5)])
def test_half_the_vertical_angle_of_view_is_the_outer_edge_of_the_last_row(side, edge):
    assert project(pinhole(), (0, side * math.tan(math.radians(45)), 1))[1] == pytest.approx(edge)


def test_the_right_camera_sees_a_point_from_its_own_place():
    point, baseline = np.array([0.3, -0.2, 4.0]), 0.25
    assert project(pinhole(baseline), point) == pytest.approx(project(pinhole(), point - [baseline, 0, 0]))
    assert project(pinhole(baseline), point)[0] < project(pinhole(), point)[0]  # nearer to its left edge


def test_the_baseline_is_where_stereo_software_reads_it():
    info = pinhole(0.25)
    assert info.p[3] == pytest.approx(-info.p[0] * 0.25)
    assert -info.p[3] / info.p[0] == pytest.approx(0.25)
    assert str(pinhole().p[3]) == "0.0", "a zero is shown without a sign"


def test_an_ideal_pinhole_has_no_distortion_and_no_rectification():
    info = pinhole(0.25)
    assert (info.width, info.height, info.header.frame_id) == (WIDTH, HEIGHT, "camera")
    assert info.distortion_model == "plumb_bob"
    assert list(info.d) == [0.0] * 5
    assert np.array_equal(np.array(info.r).reshape(3, 3), np.eye(3))
    assert np.array_equal(np.array(info.k).reshape(3, 3), np.array(info.p).reshape(3, 4)[:, :3])
