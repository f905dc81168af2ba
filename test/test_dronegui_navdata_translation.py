# SPDX-License-Identifier: Apache-2.0
"""Navdata as ROS messages: each sign and unit by its physical meaning, and what is not known marked as such."""

import math
from pathlib import Path

import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Range

from drone_bridge.dronegui.codec import (
    NEED_DATA,
    ControllerConnection,
    Demo,
    Feature,
    FlightState,
    ReceiverConnection,
    VisionDetect,
)
from drone_bridge.dronegui.topics import navdata as translate
from drone_bridge.dronegui.topics.navdata import DeadReckoning
from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, rotated
from drone_bridge.ros.frames import DroneFrameNames, OdometryCovariances

CAPTURE = Path(__file__).parent / "captures" / "gui_to_controller_navdata.jsonl"
STAMP = Time(sec=12, nanosec=34)
NAMES = DroneFrameNames("d1/")
COVARIANCES = OdometryCovariances(translate.POSE_VARIANCES, translate.TWIST_VARIANCES)
LEVEL = {"phi": 0.0, "theta": 0.0, "psi": 0.0, "altitude": 1000.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}


def attitude(**angles):
    """Return roll, pitch and yaw in degrees, and the quaternion."""
    message = translate.imu(Demo(**{**LEVEL, **angles}), STAMP, NAMES)
    q = message.orientation
    quaternion = Quaternion(q.x, q.y, q.z, q.w)
    return [math.degrees(angle) for angle in euler_from_quaternion(quaternion)], quaternion


def test_a_raised_nose_points_up():
    angles, q = attitude(theta=10_000.0)  # thousandths of a degree
    assert angles == pytest.approx([0, -10, 0])
    assert rotated(q, 1, 0, 0)[2] == pytest.approx(math.sin(math.radians(10)))


def test_a_bank_to_the_right_lowers_the_right_side():
    angles, q = attitude(phi=10_000.0)
    assert angles == pytest.approx([10, 0, 0])
    assert rotated(q, 0, -1, 0)[2] < 0


def test_a_turn_to_the_right_faces_right():
    angles, q = attitude(psi=90_000.0)
    assert angles == pytest.approx([0, 0, -90])
    assert rotated(q, 1, 0, 0) == pytest.approx((0, -1, 0))


def test_rates_and_accelerations_are_marked_as_unknown():
    message = translate.imu(Demo(**LEVEL), STAMP, NAMES)
    assert message.angular_velocity_covariance[0] == message.linear_acceleration_covariance[0] == -1
    assert message.orientation_covariance[0] == message.orientation_covariance[4] > 0
    assert message.orientation_covariance[8] > message.orientation_covariance[0]
    assert (message.header.stamp, message.header.frame_id) == (STAMP, "d1/base_link")


def test_velocities_are_forward_left_up_in_metres_per_second():
    linear = translate.velocity(Demo(vx=1500.0, vy=250.0, vz=-100.0), STAMP, NAMES).twist.linear
    assert (linear.x, linear.y, linear.z) == pytest.approx((1.5, -0.25, 0.1))


def test_missing_components_are_not_zero():
    message = translate.velocity(Demo(vx=1500.0), STAMP, NAMES)
    assert message.twist.linear.x == 1.5
    assert math.isnan(message.twist.linear.y)
    assert math.isnan(message.twist.angular.z)


def test_the_altitude_is_that_of_an_ultrasound_rangefinder_with_its_limits():
    message = translate.altitude(Demo(altitude=730.0), STAMP, NAMES)
    assert (message.radiation_type, message.header.frame_id) == (Range.ULTRASOUND, "d1/altimeter_link")
    assert (message.range, message.min_range, message.max_range) == pytest.approx((0.73, 0.2, 6.0))
    (down,) = translate.static_transforms(NAMES, STAMP).transforms
    q = down.transform.rotation
    assert rotated(Quaternion(q.x, q.y, q.z, q.w), 1, 0, 0) == pytest.approx((0, 0, -1))


def test_the_charge_is_a_fraction():
    message = translate.battery_state(Demo(vbat_flying_percentage=87.0), STAMP, NAMES)
    assert message.percentage == pytest.approx(0.87)
    assert math.isnan(message.voltage)


def test_detections_are_fractions_of_the_picture():
    block = VisionDetect((Feature(512, 430, 88, 61, 143), Feature(0, 1000, 10, 10)))
    first, second = translate.detections(block, STAMP, NAMES).detections
    assert (first.center_x, first.center_y, first.width, first.height) == pytest.approx((0.512, 0.43, 0.088, 0.061))
    assert first.distance == pytest.approx(1.43)
    assert math.isnan(second.distance)


@pytest.mark.parametrize("make", [translate.imu, translate.battery_state, translate.altitude, translate.velocity])
def test_missing_data_gives_no_message(make):
    assert make(Demo(), STAMP, NAMES) is None


# Dead reckoning.


def walk(*steps, **demo):
    """Return the last pose after blocks at these times, s."""
    dead_reckoning = DeadReckoning()
    return [dead_reckoning.update(Demo(**{**LEVEL, **demo}), now_s) for now_s in steps][-1]


def test_the_path_follows_the_heading():
    pose = walk(0.0, 0.4, 0.8, vx=1000.0)
    assert (pose.x, pose.y, pose.z) == pytest.approx((0.8, 0, 1))
    pose = walk(0.0, 0.4, 0.8, vx=1000.0, psi=90_000.0)  # facing right
    assert (pose.x, pose.y) == pytest.approx((0, -0.8))
    pose = walk(0.0, 0.4, 0.8, vy=1000.0)  # to the right
    assert (pose.x, pose.y) == pytest.approx((0, -0.8))


def test_variances_grow_with_distance_and_with_each_gap():
    near, far = walk(0.0, 0.1, vx=1000.0), walk(0.0, 0.4, 0.8, vx=1000.0)
    assert 0 < near.variance < far.variance
    pose = walk(0.0, 3.0, vx=1000.0)
    assert pose.x == 0, "nobody knows how the drone moved meanwhile"
    assert pose.variance > 100


@pytest.mark.parametrize("missing", ["phi", "theta", "psi", "altitude", "vx", "vy"])
def test_incomplete_navdata_gives_no_odometry(missing):
    assert walk(0.0, **{missing: None}) is None


def test_odometry_marks_what_it_does_not_know():
    message = translate.odometry(Demo(**LEVEL), walk(0.0), COVARIANCES, STAMP, NAMES)
    assert (message.header.frame_id, message.child_frame_id) == ("d1/odom", "d1/base_link")
    assert all(message.pose.covariance[7 * axis] > 0 for axis in (2, 3, 4, 5))
    assert [message.twist.covariance[7 * axis] for axis in (2, 3, 4, 5)] == [1e6] * 4


def test_drift_is_added_to_the_configured_variances():
    given = OdometryCovariances([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0] * 6)
    drifted = walk(0.0, 0.4, vx=1000.0)
    for _ in range(2):  # what is added is added to one message
        message = translate.odometry(Demo(**LEVEL), drifted, given, STAMP, NAMES)
        diagonal = list(message.pose.covariance[::7])
        assert diagonal == pytest.approx([1.0 + drifted.variance, 2.0 + drifted.variance, 3.0, 4.0, 5.0, 6.0])
        assert list(message.twist.covariance[::7]) == [7.0] * 6


def test_a_captured_flight_ends_where_its_velocities_lead():
    connection, dead_reckoning, x, y = ControllerConnection(), DeadReckoning(), 0.0, 0.0
    for datagram in CAPTURE.read_bytes().splitlines():
        connection.receive_data(datagram)
    demos = [event for event in iter(connection.next_event, NEED_DATA) if isinstance(event, Demo)]
    for number, demo in enumerate(demos):
        pose = dead_reckoning.update(demo, number / 15)
        if number:  # level to within 2 degrees: the heading is all that counts
            heading = math.radians(demo.psi / 1000)  # clockwise
            x += (demo.vx * math.cos(heading) - demo.vy * math.sin(heading)) / 15000
            y -= (demo.vx * math.sin(heading) + demo.vy * math.cos(heading)) / 15000
    assert (pose.x, pose.y) == pytest.approx((x, y), abs=0.02)
    assert math.hypot(x, y) > 0.2


# Back from ROS messages.


def through_ros(block):
    """Return a block that has been messages in between."""
    messages = {
        "orientation": (imu := translate.imu(block, STAMP, NAMES)) and imu.orientation,
        "height": (altitude := translate.altitude(block, STAMP, NAMES)) and altitude.range,
        "velocity": (velocity := translate.velocity(block, STAMP, NAMES)) and velocity.twist.linear,
        "percentage": (battery := translate.battery_state(block, STAMP, NAMES)) and battery.percentage,
    }
    return translate.demo(block.flight_state, **messages)


def test_recorded_navdata_round_trips():
    connection = ControllerConnection()
    count = 0
    for line in CAPTURE.read_bytes().splitlines():
        connection.receive_data(line)
        block = connection.next_event()
        if isinstance(block, VisionDetect):
            assert translate.vision_detect(translate.detections(block, STAMP, NAMES)) == block
        if not isinstance(block, Demo):
            continue
        back = through_ros(block)
        for name in ("vbat_flying_percentage", "altitude"):
            assert getattr(back, name) == getattr(block, name)
        for name in ("phi", "theta", "vx", "vy", "vz"):
            assert getattr(back, name) == pytest.approx(getattr(block, name), abs=1e-9)
        assert math.remainder(back.psi - block.psi, 360_000) == pytest.approx(0, abs=1e-9)
        assert back.flight_state is block.flight_state
        count += 1
    assert count > 50


def test_unknown_values_are_left_out():
    assert translate.demo(None, None, None, None, None) == Demo()
    assert through_ros(Demo(ctrl_state=FlightState.FLYING << 16, vx=100.0)) == Demo(
        ctrl_state=FlightState.FLYING << 16, vx=100.0
    )


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -math.inf, 1e300])
def test_numbers_that_do_not_fit_the_wire_are_left_out(nonsense):
    linear = translate.velocity(Demo(vx=nonsense, vy=nonsense, vz=nonsense), STAMP, NAMES).twist.linear
    orientation = translate.imu(Demo(**LEVEL), STAMP, NAMES).orientation
    orientation.x = nonsense
    block = translate.demo(FlightState.LANDED, orientation, nonsense, linear, nonsense)
    assert block == Demo(ctrl_state=FlightState.LANDED << 16)
    ReceiverConnection().send(block)


def test_integer_fields_are_written_as_integers():
    block = translate.demo(FlightState.LANDED, None, 1.2504, None, 0.5)
    assert ReceiverConnection().send(block) == (
        b'{"type":"demo","ctrl_state":131072,"vbat_flying_percentage":50,"altitude":1250}'
    )


def test_an_unset_orientation_is_none():
    orientation = translate.imu(Demo(**LEVEL), STAMP, NAMES).orientation
    orientation.w = 0.0
    assert translate.demo(None, orientation, None, None, None) == Demo()


def test_a_body_that_faces_left_and_lowers_its_nose_reads_so():
    orientation = translate.imu(Demo(phi=0.0, theta=-10_000.0, psi=-90_000.0), STAMP, NAMES).orientation
    block = translate.demo(None, orientation, None, None, None)
    assert (block.theta, block.psi) == pytest.approx((-10_000.0, -90_000.0))


def test_detections_without_a_position_are_left_out():
    message = translate.detections(VisionDetect((Feature(1, 2, 3, 4), Feature(5, 6, 7, 8))), STAMP, NAMES)
    message.detections[0].center_x = math.nan
    assert translate.vision_detect(message) == VisionDetect((Feature(5.0, 6.0, 7.0, 8.0),))
