# SPDX-License-Identifier: Apache-2.0
"""The testbed's messages as ROS messages: the meaning of each number, and marks for unknown values."""

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from rotations import about, matrix, turned

from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.msg import DroneProperties
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.transforms import transform
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed import units
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.topics import StereoFrameNames, TestbedTranslation
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState
from drone_bridge.testbed.vehicle.emulator.world import RED, Sphere, StereoCamera

DEGREES, RADIANS = AngleUnit.DEGREES, AngleUnit.RADIANS
CONSTANTS = Constants(120.0, 90.0, 320, 240, 0.25, 1.5, 9.81, 0.2, 25.0, 720.0, 360.0, 180.0)
NAMES = StereoFrameNames()
FRAME = SensorFrame(b"", b"", time=1, pitch=10)
FORWARD, LEFT, UP = np.eye(3)
EAST, NORTH, _ = np.eye(3)
VARIANCE, FULL_CIRCLE = translate.ANGLE_DEVIATION**2, math.pi**2 / 3


def command(roll=0.0, pitch=0.0, yaw=0.0, thrust=9.81):
    return RatesAndThrust(roll, pitch, yaw, thrust)


def imu(unit=DEGREES, **fields):
    return TestbedTranslation(unit, NAMES).imu(replace(FRAME, **fields), Time())


# Commands.


def test_body_rates_go_out_in_radians_per_second_where_the_wire_has_them():
    sent, was_within = units.motion_parameters(command(1, 2, 3, 4), CONSTANTS, RADIANS)
    assert (sent, was_within) == (MotionParameters(pitch_rate=2, roll_rate=1, yaw_rate=-3, thrust=4), True)


def test_thrust_is_clamped_between_nothing_and_the_maximum():
    for thrust, clamped in ((-0.5, 0), (0, 0), (25, 25), (25.5, 25), (1e300, 25)):
        sent, was_within = units.motion_parameters(command(thrust=thrust), CONSTANTS, DEGREES)
        assert sent.thrust == clamped
        assert was_within is (thrust == clamped)


def test_a_rate_at_its_maximum_is_within_it_whatever_the_unit_rounds_to():
    maxima = [math.radians(rate) for rate in (360, 720, 180)]
    for sign in (1, -1):
        asked = command(*(sign * rate for rate in maxima))
        assert units.motion_parameters(asked, CONSTANTS, DEGREES)[1]


@given(*4 * [st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)])
def test_whatever_is_asked_for_what_is_sent_is_within_the_maxima(roll, pitch, yaw, thrust):
    for unit in AngleUnit:
        sent, _ = units.motion_parameters(command(roll, pitch, yaw, thrust), CONSTANTS, unit)
        assert abs(sent.pitch_rate) <= 720
        assert abs(sent.roll_rate) <= 360
        assert abs(sent.yaw_rate) <= 180
        assert 0 <= sent.thrust <= 25


@pytest.mark.parametrize("gravity", [9.81, -9.81])
def test_hovering_is_no_rotation_and_thrust_against_the_weight(gravity):
    assert units.hover(replace(CONSTANTS, gravity=gravity)) == command(thrust=pytest.approx(1.5 * 9.81))


def test_the_drone_follows_a_command_the_way_it_was_meant():
    """A command through translation and the emulated testbed: the body rotates about ROS's axes."""
    for rates in ((0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5)):
        sent, _ = units.motion_parameters(command(*rates, thrust=0.0), CONSTANTS, DEGREES)
        motion = DroneInput(sent.pitch_rate, sent.roll_rate, sent.yaw_rate, sent.thrust)
        state = DroneState.at_start().advance(Airframe(), motion, np.zeros(3), 0.1)
        heading, pitch, roll = state.angles
        frame = replace(FRAME, pitch=pitch, roll=roll, yaw=heading)
        attitude = matrix(units.orientation(units.measurement(frame, DEGREES)))
        north = about(UP, math.pi / 2)
        assert np.allclose(attitude, north @ about(rates, 0.05), atol=1e-9)


# Attitude.


@pytest.mark.parametrize(
    ("angles", "variances"),
    [
        ({"roll": 10}, (VARIANCE, VARIANCE, FULL_CIRCLE)),
        ({"yaw": 10}, (FULL_CIRCLE, VARIANCE, VARIANCE)),
        ({"roll": 5, "yaw": 10}, (VARIANCE,) * 3),
    ],
)
def test_an_unknown_angle_has_the_variance_of_a_full_circle_and_is_zero(angles, variances):
    message = imu(pitch=30, **angles)
    assert np.allclose(np.array(message.orientation_covariance).reshape(3, 3), np.diag(variances))
    if "yaw" not in angles:
        assert turned(message.orientation, FORWARD)[1] == pytest.approx(0)


def test_rates_and_accelerations_are_marked_as_not_measured():
    message = imu()
    assert message.angular_velocity_covariance[0] == -1
    assert message.linear_acceleration_covariance[0] == -1
    assert message.angular_velocity.x == message.linear_acceleration.z == 0


# Cameras.


def camera_pose(side):
    """Position of an optical frame in base_link: translation and rotation, over both transforms."""
    transforms = {transform.child_frame_id: transform for transform in translate.camera_transforms(CONSTANTS, NAMES)}
    optical = transforms[NAMES.optical(side)]
    camera = transforms[optical.header.frame_id]
    assert camera.header.frame_id == NAMES.base_link
    shift = camera.transform.translation
    rotation = matrix(camera.transform.rotation) @ matrix(optical.transform.rotation)
    return np.array([shift.x, shift.y, shift.z]), rotation


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("heading", "pitch", "roll"), [(0, 0, 0), (40, 0, 0), (0, 25, 0), (0, 0, 30), (-60, -15, 50)])
def test_the_emulated_camera_sees_a_target_where_tf_and_camera_info_say(side, heading, pitch, roll):
    """From the testbed's world through position, attitude, tf and CameraInfo to a pixel, as in the picture."""
    right, up, back = np.eye(3)
    rotation = about(-up, math.radians(heading)) @ about(-right, math.radians(pitch)) @ about(-back, math.radians(roll))
    state = DroneState(np.array([3.0, -2.0, 5.0]), np.zeros(3), rotation)
    target = state.position + rotation @ [0.4, 0.7, -4.0]
    images = StereoCamera(320, 240, 120, 90, 0.25).render(state, [Sphere(tuple(target), 0.15, RED)])
    rows, columns = np.nonzero((images[side == "right"] == RED).all(axis=2))

    frame = replace(FRAME, pitch=pitch, roll=roll, yaw=heading, position=tuple(state.position))
    measured = units.measurement(frame, DEGREES)
    place, attitude = measured.position, units.orientation(measured)
    in_enu = np.array([target[0], -target[2], target[1]])
    in_body = matrix(attitude).T @ (in_enu - place)
    shift, camera = camera_pose(side)
    in_camera = camera.T @ (in_body - shift)
    intrinsics = np.array(translate.camera_info(CONSTANTS, DEGREES, NAMES, side).k).reshape(3, 3)
    column, row, depth = intrinsics @ in_camera
    assert depth > 0
    assert columns.mean() == pytest.approx(column / depth, abs=0.6)
    assert rows.mean() == pytest.approx(row / depth, abs=0.6)


def test_images_become_jpegs_of_the_same_colours():
    translation, size = TestbedTranslation(DEGREES, NAMES), replace(CONSTANTS, width=64, height=48)
    translation.drone_properties(size, Time())
    colours = {"left": (250, 20, 90), "right": (10, 200, 60)}  # red, green, blue; flat, as a testbed's scenes are
    frame = replace(FRAME, **{side: bytes(colour) * (64 * 48) for side, colour in colours.items()})
    for side, colour in colours.items():
        message = translation.compressed_image(frame, Time(sec=3), side)
        assert (message.format, message.header.stamp.sec) == ("rgb8; jpeg compressed bgr8", 3)
        assert message.header.frame_id == f"{side}_camera_optical_frame"
        decoded = cv2.imdecode(np.frombuffer(message.data, np.uint8), cv2.IMREAD_COLOR)
        assert decoded.shape == (48, 64, 3)
        assert np.abs(decoded[:, :, ::-1].astype(int) - colour).max() <= 6


def test_every_frame_has_the_prefix():
    names = StereoFrameNames("drone1/")
    assert names.map == "drone1/map"
    transforms = [*translate.camera_transforms(CONSTANTS, names), transform(names.map, names.odom)]
    frame_ids = {transform.header.frame_id for transform in transforms}
    frame_ids |= {transform.child_frame_id for transform in transforms}
    frame_ids |= {translate.camera_info(CONSTANTS, DEGREES, names, "left").header.frame_id}
    cameras = {f"{side}_camera_{kind}" for side in ("left", "right") for kind in ("link", "optical_frame")}
    assert frame_ids == {f"drone1/{name}" for name in ("map", "odom", "base_link", *cameras)}


# Properties.


@pytest.mark.parametrize("gravity", [9.81, -9.81])
def test_drone_properties_are_in_si_units_with_gravity_downwards(gravity):
    properties = DroneProperties(**units.properties(replace(CONSTANTS, gravity=gravity), DEGREES))
    assert (properties.image_width, properties.image_height) == (320, 240)
    assert properties.horizontal_angle_of_view == pytest.approx(2 * math.pi / 3)
    assert properties.vertical_angle_of_view == pytest.approx(math.pi / 2)
    assert properties.camera_separation == 0.25
    assert (properties.mass, properties.gravity, properties.drag) == (1.5, 9.81, 0.2)
    assert properties.max_thrust == 25
    assert properties.max_pitch_rate == pytest.approx(4 * math.pi)
    assert properties.max_roll_rate == pytest.approx(2 * math.pi)
    assert properties.max_yaw_rate == pytest.approx(math.pi)


# Times.


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, (0, 0)),
        (-0.0, (0, 0)),
        (0.125, (0, 125_000_000)),
        (1.5, (1, 500_000_000)),
        (0.9999999999, (1, 0)),
        (1e-10, (0, 0)),
        (16_777_216.0, (16_777_216, 0)),
        (2.0**31 - 1, (2**31 - 1, 0)),
        (2.0**31, (2**31 - 1, 0)),
        (3.4e38, (2**31 - 1, 0)),
        (-1.0, (0, 0)),
        (-3.4e38, (0, 0)),
    ],
)
def test_a_time_of_the_wire_is_the_nearest_stamp_there_is(seconds, expected):
    stamp = time_from_seconds(seconds)
    assert (stamp.sec, stamp.nanosec) == expected


def test_odometry_has_the_velocity_of_a_circle():
    """Left-hand circle of 2 m at 1 m/s in the world's own axes, x right and z back, with the nose 10 degrees down."""
    translation = TestbedTranslation(RADIANS, NAMES)
    for k in range(100):
        turned_by = 0.5 * k / 30
        place = 2.0 * math.cos(turned_by), 5.0, -2.0 * math.sin(turned_by)
        frame = replace(FRAME, pitch=math.radians(10), roll=0.0, yaw=-turned_by, position=place)
        message = translation.odometry(frame, time_from_seconds(100.0 + k / 30))
        assert (message.twist.covariance[0] == 1e6) == (k == 0)
    twist = message.twist.twist
    ahead, up = math.cos(math.radians(10)), math.sin(math.radians(10))
    assert (twist.linear.x, twist.linear.y, twist.linear.z) == pytest.approx((ahead, 0.0, up), abs=0.01)
    assert twist.angular.z == pytest.approx(0.5, abs=0.01)
