# SPDX-License-Identifier: Apache-2.0
"""Physical meaning of each sign, compared with rotations from first principles."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rotations import about, matrix

from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.quaternions import euler_from_quaternion, quaternion_from_euler
from drone_bridge.ros.topics import frames
from drone_bridge.testbed import units as testbed_frames
from drone_bridge.testbed.codec import AngleUnit, Constants, SensorFrame

FORWARD, LEFT, UP = np.eye(3)  # body, REP 103
EAST, NORTH, SKY = np.eye(3)  # world, ENU
# The testbed's world and body: right-handed, y up, heading 0 along -z.
TESTBED_RIGHT, TESTBED_UP, TESTBED_BACK = np.eye(3)

angles = st.floats(-math.pi, math.pi)
numbers = st.floats(-1000, 1000)


def level_flight(pitch=0.0, roll=0.0, heading=0.0):
    """Attitude of the testbed's angles, radians, as a matrix from the body to ENU."""
    frame = SensorFrame(b"", b"", 0.0, pitch, roll, heading)
    return matrix(testbed_frames.orientation(testbed_frames.measurement(frame, AngleUnit.RADIANS)))


def close(actual, expected):
    return np.allclose(actual, expected, atol=1e-9)


# Rotations in isolation.


@given(angles, angles, angles)
def test_euler_angles_turn_about_z_then_the_new_y_then_the_newest_x(roll, pitch, yaw):
    expected = about(UP, yaw) @ about(LEFT, pitch) @ about(FORWARD, roll)
    assert close(matrix(quaternion_from_euler(roll, pitch, yaw)), expected)


@given(angles, st.floats(-1.57, 1.57), angles)
def test_euler_angles_come_back_from_the_quaternion(roll, pitch, yaw):
    back = euler_from_quaternion(quaternion_from_euler(roll, pitch, yaw))
    differences = [math.remainder(a - b, 2 * math.pi) for a, b in zip(back, (roll, pitch, yaw), strict=True)]
    assert differences == pytest.approx([0, 0, 0], abs=1e-6)


@given(angles, angles, angles)
def test_euler_angles_beyond_the_vertical_are_the_same_rotation(roll, pitch, yaw):
    quaternion = quaternion_from_euler(roll, pitch, yaw)
    back = euler_from_quaternion(quaternion)
    assert np.allclose(matrix(quaternion_from_euler(*back)), matrix(quaternion), atol=1e-6)


@pytest.mark.parametrize("pitch", [math.pi / 2, -math.pi / 2])
def test_straight_down_and_up_give_finite_numbers(pitch):
    roll, back, yaw = euler_from_quaternion(quaternion_from_euler(0.0, pitch, 0.0))
    assert back == pytest.approx(pitch, abs=1e-6)
    assert math.isfinite(roll + yaw)


# The optical frame.


def optical(point_in_camera_body):
    """Convert a point from a camera's body axes to its optical axes."""
    return matrix(frames.OPTICAL_IN_BODY).T @ point_in_camera_body


def test_right_below_and_ahead_are_x_y_and_z_of_the_optical_frame():
    assert close([optical(-LEFT), optical(-UP), optical(FORWARD)], np.eye(3))


# The testbed's world.


def test_right_ahead_up_of_the_testbed_is_east_north_up():
    assert testbed_frames.enu_from_testbed(1, 0, 0) == (1, 0, 0)
    assert testbed_frames.enu_from_testbed(0, 0, -1) == (0, 1, 0)
    assert testbed_frames.enu_from_testbed(0, 1, 0) == (0, 0, 1)


def test_heading_zero_is_north():
    assert close(level_flight() @ FORWARD, NORTH)
    assert testbed_frames.enu_yaw_from_heading(0) == pytest.approx(math.pi / 2)


@given(angles, angles, angles)
def test_the_attitude_is_the_testbeds_attitude_seen_from_enu(pitch, roll, heading):
    """The testbed's own rotation, about its own axes with its own signs, renamed at both ends."""
    heading_turn = about(-TESTBED_UP, heading)  # to the right
    pitch_turn = about(-TESTBED_RIGHT, pitch)  # down
    roll_turn = about(-TESTBED_BACK, roll)  # to the right
    world = np.column_stack([testbed_frames.enu_from_testbed(*axis) for axis in np.eye(3)])
    body = np.column_stack([-LEFT, UP, -FORWARD])  # the testbed's x, y, z of the body in REP 103
    expected = world @ heading_turn @ pitch_turn @ roll_turn @ body.T
    assert close(level_flight(pitch, roll, heading), expected)


# Rates.


def wire_rates(roll=0.0, pitch=0.0, yaw=0.0):
    constants = Constants(90.0, 60.0, 2, 1, 0.25, 1.5, 9.75, 0.25, 25.0, 1e300, 1e300, 1e300)
    command = RatesAndThrust(roll, pitch, yaw, 0.0)
    motion, _ = testbed_frames.motion_parameters(command, constants, AngleUnit.RADIANS)
    return motion.pitch_rate, motion.roll_rate, motion.yaw_rate


def test_no_rotation_is_plain_zero_on_the_wire():
    assert [math.copysign(1, rate) for rate in wire_rates()] == [1, 1, 1]


@given(numbers, numbers, numbers)
def test_the_rates_are_one_angular_velocity_in_two_bodies(roll, pitch, yaw):
    pitch_rate, roll_rate, yaw_rate = wire_rates(roll, pitch, yaw)
    in_testbed = -pitch_rate * TESTBED_RIGHT - yaw_rate * TESTBED_UP - roll_rate * TESTBED_BACK
    body = np.column_stack([-LEFT, UP, -FORWARD])
    assert close(body @ in_testbed, [roll, pitch, yaw])


# Units.
