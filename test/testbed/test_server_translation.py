# SPDX-License-Identifier: Apache-2.0
"""Round trip from the wire through testbed_bridge and testbed_server, exact to the last bit of the floats."""

import math

import pytest
from builtin_interfaces.msg import Time
from hypothesis import example, given
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CameraInfo, Imu
from testbed_bytes import float32

from drone_bridge.msg import DroneProperties
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import AngleUnit, SensorFrame
from drone_bridge.testbed.topics import StereoFrameNames, TestbedTranslation

DEGREES = AngleUnit.DEGREES
NAMES = StereoFrameNames()
LEFT, RIGHT = b"left", b"right"


FINEST = 2.0**-13  # degrees


def angles(limit):
    """Floats of the wire in degrees, with the resolution of testbeds."""
    return st.one_of(st.just(0.0), st.floats(FINEST, limit, width=32), st.floats(-limit, -FINEST, width=32))


QUARTER = 89.0  # degrees: straight up and down, heading and roll are ambiguous
coordinates = st.floats(-1e6, 1e6, width=32)


def through_ros(frame):
    """A frame as published by the bridge and read by the server."""
    translation = TestbedTranslation(DEGREES, NAMES)
    return translate.sensed(translation.odometry(frame, Time()) or translation.imu(frame, Time()), DEGREES)


def on_the_wire(*values):
    return [float32(value) for value in values]


@given(angles(QUARTER), angles(180), angles(180), st.tuples(coordinates, coordinates, coordinates))
@example(0.0, 0.0, 0.0, (0.0, -0.0, 0.0))
def test_poses_round_trip(pitch, roll, heading, position):
    frame = SensorFrame(LEFT, RIGHT, 1.5, pitch, roll, yaw=heading, position=position)
    back = through_ros(frame)
    assert on_the_wire(back.pitch, back.roll) == [pitch, roll] or abs(roll) == 180
    assert on_the_wire(back.yaw) == [heading] or abs(heading) == 180
    assert back.position == position


@given(angles(180), angles(180))
@example(90.5, 100.0)
@example(-120.0, -30.0)
def test_pitch_and_yaw_round_trip_where_roll_is_unknown(pitch, heading):
    back = through_ros(SensorFrame(LEFT, RIGHT, 1.5, pitch, yaw=heading))
    assert on_the_wire(back.pitch) == pytest.approx([pitch], abs=1e-4) or abs(pitch) > 179.99
    turned = math.remainder(back.yaw - heading, 360)
    assert turned == pytest.approx(0, abs=1e-4) or abs(abs(pitch) - 90) < 0.01
    assert back.position is None


def test_uncalibrated_cameras_are_refused():
    with pytest.raises(ValueError, match="not calibrated"):
        translate.add_cameras(DroneProperties(), CameraInfo(width=64, height=48), None)


@pytest.mark.parametrize("quaternion", [(0.0, 0.0, 0.0, 0.0), (0.0, 0.0, math.nan, 1.0), (0.0, 0.0, 0.0, 2.0)])
@pytest.mark.parametrize("kind", [Imu, Odometry])
def test_an_invalid_rotation_gives_no_attitude(kind, quaternion):
    message = kind()
    orientation = message.pose.pose.orientation if kind is Odometry else message.orientation
    orientation.x, orientation.y, orientation.z, orientation.w = quaternion
    with pytest.raises(ValueError, match="not a unit quaternion"):
        translate.sensed(message, DEGREES)


def test_an_imu_without_an_orientation_is_refused():
    message = Imu()
    message.orientation_covariance[0] = -1.0
    with pytest.raises(ValueError, match="no orientation"):
        translate.sensed(message, DEGREES)
