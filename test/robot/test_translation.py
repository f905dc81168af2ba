# SPDX-License-Identifier: Apache-2.0
"""Translation of a robot's speeds, sensors and names, and what its bridge does with a name."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from sensor_msgs.msg import BatteryState

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot import codec
from drone_bridge.robot.bridge.node import RobotBridge
from drone_bridge.robot.codec import Speeds
from drone_bridge.robot.discovery import DiscoveryRoute
from drone_bridge.robot.topics import RobotTranslation, sensor_topics
from drone_bridge.robot.units import SkidSteer, measurement
from drone_bridge.ros.topics.frames import FrameNames

STAMP = Time(sec=12, nanosec=5)
TRANSLATION = RobotTranslation()
STEER = SkidSteer(max_wheel_speed=2.0)
finite = st.floats(allow_nan=False, allow_infinity=False)


# Speeds.


def test_to_turn_left_the_right_side_runs_faster():
    assert STEER.sides(forward=1.0, turn=2.0) == (0.5, 1.5)
    assert STEER.speeds(BodyVelocity(1.0, turn=2.0)) == Speeds(512, 1536)
    assert STEER.velocity(Speeds(512, 1536)) == BodyVelocity(1.0, turn=2.0)


def test_excessive_speeds_are_scaled_down_on_both_sides():
    """A curve keeps its radius of 1 m: 1.25 to 0.75 at the sides, at any speed."""
    for speed in (2.0, 20.0, 2e6, 1e307):
        slower = STEER.within_maxima(BodyVelocity(speed, turn=speed))
        assert slower != BodyVelocity(speed, turn=speed)
        assert STEER.speeds(slower) == Speeds(1229, 2048)


@given(finite, finite, st.floats(0.01, 10), st.floats(0.01, 100))
def test_finite_commands_give_speeds_in_range_that_turn_the_right_way(forward, turn, separation, fastest):
    steer = SkidSteer(separation, fastest)
    speeds = steer.speeds(steer.within_maxima(BodyVelocity(forward, turn=turn)))
    assert max(map(abs, speeds)) <= 2048
    assert (speeds.right - speeds.left) * turn >= 0
    assert (speeds.right + speeds.left) * forward >= 0 or abs(speeds.right + speeds.left) <= 1


@pytest.mark.parametrize(("forward", "left_turn"), [(1.0, 0.0), (-0.5, 1.0), (0.0, 4.0)])
def test_velocity_is_the_inverse_of_speeds(forward, left_turn):
    wanted = BodyVelocity(forward, turn=left_turn)
    assert STEER.within_maxima(wanted) == wanted
    meant = STEER.velocity(STEER.speeds(wanted))
    assert (meant.forward, meant.turn) == pytest.approx((forward, left_turn), abs=2e-3)


# Sensors.


def test_a_battery_has_its_voltage_and_its_share_of_the_full_voltage():
    battery = TRANSLATION.battery(codec.Sensor(1, "pack", 9_000, 12_000), STAMP)
    assert (battery.voltage, battery.percentage) == (9.0, 0.75)
    assert (battery.present, battery.location, battery.header.stamp) == (True, "pack", STAMP)
    for field in ("temperature", "current", "charge", "capacity", "design_capacity"):
        assert math.isnan(getattr(battery, field))


@pytest.mark.parametrize(
    ("full", "value", "share"), [(12_000, 13_000, 1.0), (12_000, -1, 0.0), (0, 9_000, None), (None, 9_000, None)]
)
def test_the_percentage_stays_within_its_range_or_is_unknown(full, value, share):
    percentage = TRANSLATION.battery(codec.Sensor(1, "", value, full), STAMP).percentage
    assert math.isnan(percentage) if share is None else percentage == share


def test_a_battery_without_a_reading_is_published():
    battery = TRANSLATION.battery(codec.Sensor(1, "", None, 24_000), STAMP)
    assert battery.present
    assert math.isnan(battery.voltage)
    assert math.isnan(battery.percentage)


def test_temperature_current_and_pwm_are_in_ros_units():
    temperature = TRANSLATION.temperature(codec.Sensor(2, "", -1250), STAMP)
    assert (temperature.temperature, temperature.variance) == (-12.5, 0.0)
    assert temperature.header.frame_id == "base_link"
    current = TRANSLATION.current(codec.Sensor(3, "left\n", 1500), STAMP)
    assert (current.value, current.unit, current.name) == (1.5, "A", "left\\n")
    assert (current.header.stamp, current.header.frame_id) == (STAMP, "base_link")
    pwm = TRANSLATION.motor_pwm(codec.Sensor(4, "m", -1024), STAMP)
    assert (pwm.value, pwm.unit) == (-0.5, "1")


def test_values_beyond_the_wire_s_range_are_none():
    for voltage in (math.nan, math.inf, 3e9):
        assert TRANSLATION.wire_battery(BatteryState(voltage=voltage)) is None


def sensor(kind, name="left"):
    return codec.Sensor(kind, name)


def test_each_sensor_has_a_topic_of_its_own():
    sensors = [
        sensor(codec.SensorType.BATTERY, "M1"),
        sensor(codec.SensorType.BATTERY, "M2"),
        sensor(codec.SensorType.THERMOMETER, "M1 motor"),
        sensor(codec.SensorType.THERMOMETER, "M1-motor"),
        sensor(codec.SensorType.THERMOMETER, "m1_motor_2"),
        sensor(codec.SensorType.AMMETER, ""),
        sensor(codec.SensorType.MOTOR_PWM, "Größe 5 µ"),
        sensor(codec.SensorType.NULL, "nothing"),
        sensor(77, "sonar"),
    ]
    assert sensor_topics(sensors, most=64) == [
        "battery_state",
        "battery_state/m2",
        "temperature/m1_motor",
        "temperature/m1_motor_2",
        "temperature/m1_motor_2_2",
        "current/sensor_5",
        "motor_pwm/groe_5",
        "",
        "",
    ]
    assert sensor_topics(sensors, most=2) == ["battery_state", "battery_state/m2", *[""] * 7]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 4, 5]), st.text(max_size=6)), max_size=12), st.integers(0, 12))
def test_topics_are_valid_names_and_never_shared(sensors, most):
    topics = [topic for topic in sensor_topics([sensor(*s) for s in sensors], most) if topic]
    assert len(topics) == len(set(topics)) <= most
    for topic in topics:
        for token in topic.split("/"):
            assert token.isascii()
            assert token.isidentifier()
            assert "__" not in token
            assert token == token.strip("_").lower()


# Dead reckoning.


def test_half_a_circle_to_the_left_ends_a_diameter_to_the_left():
    pose = PlanarPose()
    for _ in range(7):
        pose = pose.moved(math.pi / 7, forward=2.0, turn=1.0)
    assert pose[:2] == pytest.approx((0, 4))
    assert abs(pose.yaw) == pytest.approx(math.pi)
    message = RobotTranslation(FrameNames("r1/")).odometry(measurement(pose, BodyVelocity(2.0, turn=1.0)), STAMP)
    assert (message.header.frame_id, message.child_frame_id) == ("r1/odom", "r1/base_link")
    assert (message.twist.twist.linear.x, message.twist.twist.angular.z) == (2.0, 1.0)
    assert abs(message.pose.pose.orientation.z) == pytest.approx(1)
    pose, twist = (np.diag(each.covariance.reshape(6, 6)) for each in (message.pose, message.twist))
    assert min(pose) >= 1e6, "nothing was measured"
    assert twist[0] == 0.1
    assert min(twist[2:5]) >= 1e6


# The bridge, without a node.


def test_a_robot_that_is_found_by_its_name_is_reported_by_it():
    assert RobotBridge.hardware_id(SimpleNamespace(parameters={"robot_name": "saber"})) == "robot 'saber'"


def test_another_robot_of_the_name_is_held_before_it_is_connected_to(closing):
    """Copies of one memory card: the second robot is switched on later."""
    holds, said = [], []
    node = SimpleNamespace(
        parameters={"robot_name": "saber", "port": 25600},
        report=SimpleNamespace(warn=said.append),
        hold=SimpleNamespace(hold=holds.append),
        connecting_failed=print,
        _read_route=DiscoveryRoute,
        _hold_other_robot=lambda *addresses: RobotBridge._hold_other_robot(node, *addresses),
        wire_log=None,
    )
    link = closing(RobotBridge.make_transport(node))
    link._on_other("127.0.0.1", "127.0.0.2")
    assert holds == ["another robot named 'saber' answers, at 127.0.0.2"]
    assert said == ["Another robot named 'saber' answers, at 127.0.0.2 instead of 127.0.0.1. It is held."]


@pytest.mark.parametrize(
    ("sentence", "given"),
    [("'eth0'.*IPv4", {"discovery_interface": "eth0"}), ("255 bytes", {"driver_name": 256 * "x"})],
)
def test_invalid_parameters_are_refused_with_a_sentence(sentence, given):
    parameters = {"driver_name": "me", "discovery_port": 1, "discovery_interface": "127.0.0.1", **given}
    node = SimpleNamespace(parameters=parameters)
    node._read_route = partial(RobotBridge._read_route, node)
    with pytest.raises(ValueError, match=sentence):
        RobotBridge.set_up(node)
