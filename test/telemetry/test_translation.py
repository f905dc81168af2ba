# SPDX-License-Identifier: Apache-2.0
"""Telemetry as ROS messages: physical meaning of signs and frames, and the topic of each value."""

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from rotations import matrix
from std_msgs.msg import Bool
from telemetry_documents import TELEMETRY

from drone_bridge.ros.topics import frames
from drone_bridge.ros.topics.covariances import AXES, UNKNOWN_VARIANCE
from drone_bridge.ros.topics.jpeg_images import JpegDecoder
from drone_bridge.telemetry import codec
from drone_bridge.telemetry.topics import OPPOSITE_SIGNS, TOPICS, LandingFrameNames, TelemetryTranslation
from drone_bridge.telemetry.units import SIGNED, Units
from drone_bridge.vision.jpegs import MAX_SCANS

FORWARD, LEFT, UP = np.eye(3)  # body, REP 103
PICTURE_RIGHT, PICTURE_DOWN, INTO_PICTURE = np.eye(3)  # optical
NAMES = LandingFrameNames("d1/")
STAMP = Time(sec=7, nanosec=8)
ROVER = codec.RoverTelemetry(codec.Vector(1.0, 2.0, 0.5), codec.Vector(0.3, 0.4, 0.0), "circular", 1.0)
REVERSED = Units(SIGNED)


def messages(units=None):
    return TelemetryTranslation(NAMES, units or Units(), default_fov=90.0)


@pytest.fixture
def made():
    return messages()


def with_camera(**values):
    return replace(TELEMETRY, camera=codec.Camera(**{"width": 320, "height": 240, "jpeg": b"", **values}))


# Attitude and rates.


def test_an_acceleration_that_is_not_on_the_wire_is_marked(made):
    assert made.imu(TELEMETRY, STAMP).linear_acceleration.z == 9.81
    without = replace(TELEMETRY, imu=replace(TELEMETRY.imu, linear_acceleration=None))
    assert made.imu(without, STAMP).linear_acceleration_covariance[0] == -1.0
    assert made.imu(without, STAMP).linear_acceleration.z == 0.0
    assert made.imu(TELEMETRY, STAMP).linear_acceleration_covariance[0] > 0.0


# Positions.


def test_the_camera_looks_down_and_forward_is_up_in_the_picture():
    optical = matrix(frames.DOWNWARD_OPTICAL_IN_BODY)  # its columns are the optical axes in the body
    assert np.allclose(optical @ INTO_PICTURE, -UP)
    assert np.allclose(optical @ PICTURE_DOWN, -FORWARD)
    assert np.allclose(optical @ PICTURE_RIGHT, -LEFT)


def test_the_pad_is_ahead_and_to_the_right_and_below():
    transform = messages().transforms(TELEMETRY, STAMP).transforms[-1]
    place = transform.transform.translation
    assert (transform.header.frame_id, transform.child_frame_id) == ("d1/base_stabilized", "d1/landing_pad")
    assert (place.x, place.y, place.z) == (0.5, -0.25, -4.5)
    pad = messages().landing_pad(TELEMETRY, STAMP)
    assert (pad.detected, pad.offset_x, pad.offset_y, pad.distance, pad.confidence) == (True, 0.5, -0.25, 4.5, 0.75)
    pad = messages(REVERSED).landing_pad(TELEMETRY, STAMP)
    assert (pad.offset_x, pad.offset_y, pad.distance) == (-0.5, 0.25, 4.5)


def test_a_pad_that_went_out_of_sight_is_nowhere(made):
    made.landing_pad(TELEMETRY, STAMP)
    out_of_sight = replace(TELEMETRY, landing_pad=None)
    pad = made.landing_pad(out_of_sight, STAMP)
    assert not pad.detected
    assert all(math.isnan(value) for value in (pad.offset_x, pad.offset_y, pad.distance, pad.confidence))
    assert "d1/landing_pad" not in {each.child_frame_id for each in made.transforms(out_of_sight, STAMP).transforms}


@pytest.mark.parametrize("units", [Units(), REVERSED])
def test_tf_levels_what_the_attitude_tilts(units):
    """Through base_stabilized, up and ahead stay the same at any tilt of the drone."""
    made = messages(units)
    level, ground, pad = made.transforms(TELEMETRY, STAMP).transforms
    assert (level.header.frame_id, level.child_frame_id) == ("d1/base_link", "d1/base_stabilized")
    in_world = matrix(made.imu(TELEMETRY, STAMP).orientation) @ matrix(level.transform.rotation)
    _, _, yaw = units.angles(*TELEMETRY.imu.orientation)
    assert np.allclose(in_world @ UP, UP)
    assert np.allclose(in_world @ FORWARD, (math.cos(yaw), math.sin(yaw), 0))
    assert (ground.header.frame_id, ground.child_frame_id) == ("d1/base_stabilized", "d1/base_footprint")
    assert ground.transform.translation.z == -5.0
    assert pad.header.frame_id == "d1/base_stabilized"


@pytest.mark.parametrize("units", [Units(), REVERSED])
def test_rates_are_along_the_axes_of_the_velocity(units):
    made = messages(units)
    angular = made.velocity(TELEMETRY, STAMP).twist.twist.angular
    level = made.transforms(TELEMETRY, STAMP).transforms[0].transform.rotation
    body = made.imu(TELEMETRY, STAMP).angular_velocity
    assert np.allclose(matrix(level) @ (angular.x, angular.y, angular.z), (body.x, body.y, body.z))


def test_what_tilts_with_the_body_is_in_the_body_s_frame():
    made = messages(Units(is_levelled=False))
    velocity = made.velocity(TELEMETRY, STAMP)
    assert velocity.header.frame_id == made.landing_pad(TELEMETRY, STAMP).header.frame_id == "d1/base_link"
    angular = velocity.twist.twist.angular
    assert (angular.x, angular.y, angular.z) == (0.4, 0.5, 0.6)
    assert made.transforms(TELEMETRY, STAMP).transforms[-1].header.frame_id == "d1/base_link"


def test_what_is_not_measured_has_a_large_variance_and_nothing_is_certain(made):
    variances = made.vertical_velocity(TELEMETRY, STAMP).twist.covariance[:: AXES + 1]
    assert [axis for axis in range(AXES) if variances[axis] < UNKNOWN_VARIANCE] == [2]
    covariances = (
        made.velocity(TELEMETRY, STAMP).twist.covariance,
        made.rover_odometry(ROVER, STAMP).pose.covariance,
        made.rover_odometry(ROVER, STAMP).twist.covariance,
    )
    assert all(variance > 0 for covariance in covariances for variance in covariance[:: AXES + 1])


def test_whether_it_flies_has_the_name_that_every_drone_has(made):
    told = [made.flying(replace(TELEMETRY, landed=landed), STAMP) for landed in (None, True, False)]
    assert told == [None, Bool(data=False), Bool(data=True)]


def test_a_velocity_of_which_a_part_is_unknown_is_none():
    message = messages().velocity(TELEMETRY, STAMP)
    message.twist.covariance[2 * (AXES + 1)] = UNKNOWN_VARIANCE
    assert messages().wire_velocity(message) is None


def test_height_and_velocities(made):
    assert made.vertical_velocity(TELEMETRY, STAMP).twist.twist.linear.z == -0.1
    velocity = made.velocity(TELEMETRY, STAMP)
    linear = velocity.twist.twist.linear
    assert (linear.x, linear.y, linear.z) == (1.0, 2.0, 3.0)
    height = made.height(TELEMETRY, STAMP)
    assert (height.header.frame_id, height.point.z) == ("d1/base_footprint", 5.0)
    assert velocity.header.frame_id == "d1/base_stabilized"
    assert velocity.header.stamp == height.header.stamp == STAMP


NUMBERS = st.floats(-codec.MAX_MAGNITUDE, codec.MAX_MAGNITUDE)
VECTORS = st.builds(codec.Vector, NUMBERS, NUMBERS, NUMBERS)
PIXELS, FIELDS_OF_VIEW = st.integers(1, 4096), st.none() | st.floats(codec.MIN_FOV, codec.MAX_FOV)
SLOW = "camera/image_raw"  # requires decoding
MESSAGES = [row.to_ros for row in TOPICS if row.of is codec.DroneTelemetry and row.to_ros and row.name != SLOW]


@given(
    st.builds(
        codec.DroneTelemetry,
        st.builds(codec.Imu, st.builds(codec.Orientation, NUMBERS, NUMBERS, NUMBERS), VECTORS, st.none() | VECTORS),
        st.builds(codec.Altimeter, NUMBERS, NUMBERS),
        VECTORS,
        st.none() | st.builds(codec.LandingPad, NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1)),
        st.builds(codec.Camera, PIXELS, PIXELS, FIELDS_OF_VIEW, st.just(b"")),
        timestamp=st.none() | st.floats(0, codec.MAX_TIMESTAMP_S),
    )
)
def test_whatever_the_wire_allows_can_be_published(telemetry):
    made = messages(REVERSED)
    for message in filter(None, (make(made, telemetry, STAMP) for make in MESSAGES)):
        assert serialize_message(message)


# Camera.


def test_the_edge_of_the_image_is_half_the_field_of_view_from_its_middle():
    info = messages().camera_info(with_camera(fov=60.0), STAMP)
    focal, centre = info.k[0], info.k[2]
    left_edge = -0.5  # ROS counts from the middle of the first pixel
    assert math.degrees(math.atan((centre - left_edge) / focal)) == pytest.approx(30.0)
    assert info.k[4] == focal, "pixels are square"
    assert info.k[5] == (240 - 1) / 2


def test_changed_camera_is_followed_and_the_size_is_that_of_the_image(made):

    def seen(**camera):
        info = made.camera_info(with_camera(**camera), STAMP)
        return info.width, info.height, pytest.approx(info.k[0])

    assert seen(fov=60.0) == (320, 240, 160 / math.tan(math.radians(30)))
    assert seen() == (320, 240, 160.0)  # by the default of 90 degrees
    assert seen(width=640) == (640, 240, 320.0)
    assert seen(jpeg=encoded(64, 48)) == (64, 48, 32.0)


# Decoding.


def encoded(width, height, *options):
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 2] = 255  # red on the left; OpenCV counts blue, green, red
    return cv2.imencode(".jpg", pixels, options)[1].tobytes()


def test_grey_and_progressive_images_are_rgb_as_well():
    grey = cv2.imencode(".jpg", np.full((8, 8), 77, np.uint8))[1].tobytes()
    assert set(JpegDecoder("optical").image(grey, STAMP).data) == {77}
    progressive = encoded(32, 24, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    assert JpegDecoder("optical").image(progressive, STAMP).width == 32


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff", b"GIF89a", encoded(32, 24)[:300]])
def test_an_undecodable_image_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"begins with|is a JPEG|has no marker|can't be decoded"):
        JpegDecoder("optical").image(data, STAMP)


def test_an_image_that_is_cut_short_is_not_filled_up():
    thumbnail = encoded(8, 8)
    segment = b"Exif\0\0" + thumbnail  # with its own end marker
    picture = encoded(32, 24)
    picture = picture[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2, "big") + segment + picture[2:]
    assert JpegDecoder("optical").image(picture + b"\0\0", STAMP).width == 32
    with pytest.raises(ValueError, match="truncated"):
        JpegDecoder("optical").image(picture[:-20], STAMP)


def test_a_jpeg_of_very_many_scans_is_not_decoded():
    picture = encoded(32, 24)
    scan = picture.index(b"\xff\xda")
    with pytest.raises(ValueError, match=f"has {MAX_SCANS + 1} scans"):
        JpegDecoder("optical").image(picture[:scan] + (MAX_SCANS + 1) * picture[scan:-2] + picture[-2:], STAMP)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_any_damage_is_decoded_or_a_value_error(position, value):
    damaged = bytearray(encoded(32, 24))
    damaged[position % len(damaged)] = value
    try:
        image = JpegDecoder("optical").image(bytes(damaged), STAMP)
    except ValueError:
        return
    assert len(image.data) == image.step * image.height


# Parameters.


def test_opposite_signs_are_names_of_signed_quantities():
    assert OPPOSITE_SIGNS.problem_with(["none"], "") is None
    assert OPPOSITE_SIGNS.problem_with([*OPPOSITE_SIGNS.default, "telemetry.relative_x"], "") is None
    assert "telemetry.thrust" in OPPOSITE_SIGNS.problem_with(["telemetry.thrust"], "")
