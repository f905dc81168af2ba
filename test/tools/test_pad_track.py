# SPDX-License-Identifier: Apache-2.0
"""The path of a drone without odometry in a report, from the pad of a rover with odometry."""

import math

import pytest
from geometry_msgs.msg import Quaternion
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from drone_bridge.msg import LandingPad
from drone_bridge.tools.report.pad_track import PadTrack

ODOMETRY, PAD, IMU = "nav_msgs/msg/Odometry", "drone_bridge/msg/LandingPad", "sensor_msgs/msg/Imu"
ROVER_X_M, ROVER_Z_M = 2.0, 0.25


def imu(yaw_rad):
    return Imu(orientation=Quaternion(z=math.sin(yaw_rad / 2), w=math.cos(yaw_rad / 2)))


def pad(frame="base_stabilized", *, detected=True):
    message = LandingPad(detected=detected, offset_x=1.0, offset_y=0.5, distance=3.0)
    message.header.frame_id = frame
    return message


@pytest.fixture
def track():
    """Track of a drone whose rover is 2 m to the east."""
    track, odometry = PadTrack(), Odometry()
    odometry.pose.pose.position.x, odometry.pose.pose.position.z = ROVER_X_M, ROVER_Z_M
    assert track.note("/a/landing_pad", PAD, pad()) is None
    assert track.note("/a/rover/odom", ODOMETRY, odometry) is None
    return track


@pytest.mark.parametrize(("yaw_rad", "place"), [(0.0, (1.0, -0.5)), (math.pi / 2, (2.5, -1.0))])
def test_a_drone_is_where_it_sees_the_pad_of_its_rover(track, yaw_rad, place):
    track.note("/a/imu/data", IMU, imu(yaw_rad))
    assert track.note("/a/landing_pad", PAD, pad()) == pytest.approx((*place, ROVER_Z_M + 3.0))
    assert track.note("/b/landing_pad", PAD, pad()) is None


def test_pad_out_of_sight_or_in_a_tilted_frame_gives_nothing(track):
    track.note("/a/imu/data", IMU, imu(0.0))
    assert track.note("/a/landing_pad", PAD, pad(detected=False)) is None
    assert track.note("/a/landing_pad", PAD, pad("base_link")) is None


def test_a_drone_with_odometry_of_its_own_has_that_track_alone(track):
    track.note("/a/imu/data", IMU, imu(0.0))
    track.note("/a/odom", ODOMETRY, Odometry())
    assert track.note("/a/landing_pad", PAD, pad()) is None
