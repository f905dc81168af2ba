# SPDX-License-Identifier: Apache-2.0
"""The path of a drone in a report, from the pad of a rover with odometry; and how its flight has ended."""

import math

import pytest
from geometry_msgs.msg import Quaternion
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool

from drone_bridge.msg import LandingPad
from drone_bridge.tools.report.landing_verdict import LandingVerdict
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


@pytest.mark.parametrize(
    ("seen_s", "distance", "end"),
    [
        (12.0, 0.3, "d: Landed after 11.0 s, 5 cm off the middle of the pad."),
        (11.0, 0.3, "d: Landed after 11.0 s."),
        (12.0, 0.6, "d: Landed after 11.0 s."),
    ],
)
def test_a_verdict_names_the_duration_and_the_place_of_the_last_landing(seen_s, distance, end):
    verdict = LandingVerdict()
    verdict.note("/d/landed", "std_msgs/msg/Bool", 0.5, Bool(data=True))
    assert verdict.sentences == []
    for time_s in (1.5, 2.0):
        verdict.note("/d/landed", "std_msgs/msg/Bool", time_s, Bool(data=False))
    assert verdict.sentences == ["d: In the air at the end."]
    seen = LandingPad(detected=True, offset_x=0.04, offset_y=0.03, distance=distance)
    verdict.note("/d/landing_pad", PAD, seen_s, seen)
    verdict.note("/d/landing_pad", PAD, 12.4, pad(detected=False))
    for time_s in (12.5, 13.0):
        verdict.note("/d/landed", "std_msgs/msg/Bool", time_s, Bool(data=True))
    assert verdict.sentences == [end]
