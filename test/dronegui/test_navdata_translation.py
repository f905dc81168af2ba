# SPDX-License-Identifier: Apache-2.0
"""Navdata as ROS messages: physical meaning of each sign and unit, and marks for unknown values."""

import math

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, Range

from drone_bridge.ar_drone.cameras import CAMERAS
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import Demo, Feature, FlightState, ReceiverConnection, VisionDetect
from drone_bridge.dronegui.topics import TABLE, DroneGuiTranslation, assembled_demo
from drone_bridge.motion.dead_reckoning import DeadReckoning
from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, rotated
from drone_bridge.pictures.topics import camera_transforms
from drone_bridge.ros.topics.covariances import AXES, UNKNOWN_VARIANCE
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.transforms import rangefinder_transform

STAMP = Time(sec=12, nanosec=34)
NAMES = DroneFrameNames("d1/")
TRANSLATION = DroneGuiTranslation(NAMES)
LEVEL = {"phi": 0.0, "theta": 0.0, "psi": 0.0, "altitude": 1000.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}


def test_an_attitude_is_right_side_down_nose_down_and_to_the_left():
    demo = Demo(**LEVEL | {"phi": 10_000.0, "theta": 20_000.0, "psi": 90_000.0})  # thousandths of a degree
    q = TRANSLATION.imu(demo, STAMP).orientation
    angles = [math.degrees(angle) for angle in euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w))]
    assert angles == pytest.approx([10, -20, -90])


def test_velocities_are_forward_left_up_in_metres_per_second():
    linear = TRANSLATION.velocity(Demo(vx=1500.0, vy=250.0, vz=-100.0), STAMP).twist.twist.linear
    assert (linear.x, linear.y, linear.z) == pytest.approx((1.5, -0.25, 0.1))


def test_missing_components_are_unknown_by_their_variance():
    twist = TRANSLATION.velocity(Demo(vx=1500.0), STAMP).twist
    assert (twist.twist.linear.x, twist.twist.linear.y, twist.twist.angular.z) == (1.5, 0.0, 0.0)
    assert twist.covariance[:: AXES + 1].tolist() == [1e-2, *[UNKNOWN_VARIANCE] * 5]
    assert from_topics(velocity=TRANSLATION.velocity(Demo(vx=1500.0, vz=0.0), STAMP)) == Demo(vx=1500.0, vz=0.0)


def test_the_altitude_is_that_of_an_ultrasound_rangefinder_with_its_limits():
    message = TRANSLATION.altitude(Demo(altitude=730.0), STAMP)
    assert (message.radiation_type, message.header.frame_id) == (Range.ULTRASOUND, "d1/altimeter_link")
    assert (message.range, message.min_range, message.max_range) == pytest.approx((0.73, 0.2, 6.0))
    q = rangefinder_transform(NAMES).transform.rotation
    assert rotated(Quaternion(q.x, q.y, q.z, q.w), 1, 0, 0) == pytest.approx((0, 0, -1))


def test_detections_are_fractions_of_the_picture():
    block = VisionDetect((Feature(512, 430, 88, 61, 143), Feature(0, 1000, 10, 10)))
    message = TRANSLATION.detections(block, STAMP)
    assert message.header.frame_id == camera_transforms(NAMES, CAMERAS)[0].child_frame_id
    first, second = message.detections
    assert (first.center_x, first.center_y, first.width, first.height) == pytest.approx((0.512, 0.43, 0.088, 0.061))
    assert first.distance == pytest.approx(1.43)
    assert math.isnan(second.distance)


@pytest.mark.parametrize("make", ["imu", "battery_state", "altitude", "height", "velocity"])
def test_missing_data_gives_no_message(make):
    assert getattr(TRANSLATION, make)(Demo(), STAMP) is None


def test_height_is_above_the_ground_below_which_tf_knows():
    height = TRANSLATION.height(Demo(altitude=730.0), STAMP)
    pose = walk(0.0, 0.4, **LEVEL | {"phi": 9e3, "psi": 9e4, "vx": 1e3})
    flown, below = TRANSLATION.transforms(pose, STAMP).transforms
    assert (height.point.z, height.header.frame_id) == (0.73, below.child_frame_id)
    above, at = flown.transform.translation, below.transform.translation
    assert (at.x, at.y, at.z) == (above.x, above.y, 0)
    assert (below.transform.rotation.x, below.transform.rotation.y) == (0, 0), "it stays level"


def walk(*steps, **demo):
    """Return the last pose after blocks at these times, s."""
    dead_reckoning, measured = DeadReckoning(), units.measurement(Demo(**{**LEVEL, **demo}))
    return [dead_reckoning.update(measured, now_s) for now_s in steps][-1]


def test_odometry_turns_as_the_heading_does():
    dead_reckoning = DeadReckoning()
    for tenths in range(10):
        measured = units.measurement(Demo(**LEVEL | {"psi": -2000.0 * tenths}))  # thousandths of a degree, + right
        twist = TRANSLATION.odometry(dead_reckoning.update(measured, tenths / 10), STAMP).twist
    assert (twist.twist.angular.z, twist.covariance[-1] < 1.0) == (pytest.approx(math.radians(20.0)), True)


# From ROS messages.


def from_topics(state=None, **messages):
    """Return the block for these messages, by topic with _ for /."""
    rows = {row.name.replace("/", "_"): row for row in TABLE.rows}
    said = {rows[topic].name: rows[topic].from_ros(TRANSLATION, message) for topic, message in messages.items()}
    return assembled_demo(said.get, state)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -math.inf, 1e300])
def test_numbers_that_do_not_fit_the_wire_are_left_out(nonsense):
    velocity = TRANSLATION.velocity(Demo(vx=nonsense, vy=nonsense, vz=nonsense), STAMP)
    imu, odometry = TRANSLATION.imu(Demo(**LEVEL), STAMP), Odometry()
    imu.orientation.x = odometry.pose.pose.position.z = nonsense
    block = from_topics(FlightState.LANDED, imu_data=imu, velocity=velocity, odom=odometry)
    known = {"phi": 0.0, "theta": 0.0, "psi": 0.0}  # by odom, as imu/data has no valid rotation
    assert block == Demo(ctrl_state=FlightState.LANDED << 16, **known)
    ReceiverConnection().send(block)


@pytest.mark.parametrize("topic", ["velocity", "odom"])
def test_tilted_velocities_are_level_on_the_wire_and_body_axes_on_topics(topic):
    """It flies ahead with its nose 12 degrees down: its body's axes point below its way."""
    tilted = {**LEVEL, "theta": -12_000.0, "vx": 3000.0}
    velocity, odometry = TRANSLATION.velocity(Demo(**tilted), STAMP), TRANSLATION.odometry(walk(0.0, **tilted), STAMP)
    linear = {"velocity": velocity, "odom": odometry}[topic].twist.twist.linear
    tilt = math.radians(12.0)
    assert (linear.x, linear.y, linear.z) == pytest.approx((3.0 * math.cos(tilt), 0.0, 3.0 * math.sin(tilt)))
    imu = TRANSLATION.imu(Demo(**tilted), STAMP)
    back = from_topics(**({"odom": odometry} if topic == "odom" else {"velocity": velocity, "imu_data": imu}))
    assert (back.vx, back.vy, back.vz) == pytest.approx((3000.0, 0.0, 0.0), abs=1e-6)


def test_odometry_is_used_for_values_without_another_topic():
    odometry = TRANSLATION.odometry(walk(0.0, **LEVEL | {"altitude": 3000.0, "vx": 250.0}), STAMP)
    assert from_topics(odom=odometry) == Demo(**{**LEVEL, "altitude": 3000, "vx": 250.0})
    assert from_topics(odom=odometry, altitude=Range(range=1.0)).altitude == 1000
    assert from_topics(odom=odometry, height=PointStamped(point=Point(z=2.0))).altitude == 2000
    assert from_topics(odom=odometry, altitude=Range(range=math.inf)).altitude == 3000
    both = {"height": PointStamped(point=Point(z=2.0)), "altitude": Range(range=1.0)}
    assert from_topics(**both).altitude == 1000


@pytest.mark.parametrize(
    ("percent", "share"),
    [(0, 0.0), (87, 0.87), (100, 1.0), (101, 1.0), (-1, 0.0)],
)
def test_a_charge_is_between_empty_and_full(percent, share):
    demo = Demo(vbat_flying_percentage=percent)
    assert TRANSLATION.battery_state(demo, STAMP).percentage == pytest.approx(share)


@pytest.mark.parametrize(("share", "percent"), [(1.004, 100), (1.01, 100), (-0.01, 0), (87.0, 100), (0.874, 87)])
def test_a_charge_of_ros_is_sent_as_one_that_a_drone_has(share, percent):
    assert TRANSLATION.wire_charge(BatteryState(percentage=share)) == {"vbat_flying_percentage": percent}


def test_an_unknown_charge_is_not_sent():
    assert TRANSLATION.wire_charge(BatteryState(percentage=math.nan)) == {"vbat_flying_percentage": None}
