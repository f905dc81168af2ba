# SPDX-License-Identifier: Apache-2.0
"""Commands of testbed_server for the vehicle, and levelling of a tilted one: without ROS, link or session."""

import math

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from plain_node import PlainNode

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.vehicle.device.modelled_flight import LevelVelocity
from drone_bridge.testbed.vehicle.server import commands
from drone_bridge.testbed.vehicle.server.commands import CommandPublisher
from drone_bridge.testbed.vehicle.session.framed_drone import FramedDrone, RatesAnswer
from drone_bridge.testbed.vehicle.session.frames import FrameSynchronizer
from drone_bridge.testbed.vehicle.session.output_choice import RATES, VELOCITY

CONSTANTS = Constants(120.0, 90.0, 2, 1, 0.25, 1.5, 9.8125, 0.25, 50.0, 720.0, 720.0, 720.0)
HOVER_N = CONSTANTS.weight * CONSTANTS.gravity
TILT = math.radians(41.0)
NOSE_DOWN, BANKED_RIGHT = quaternion_from_euler(0.0, TILT, 0.0), quaternion_from_euler(TILT, 0.0, 1.0)
LEVEL = quaternion_from_euler(0.0, 0.0, 2.0)
NOW = Time(sec=7)


class Node(PlainNode):
    """Has a ticker, called by the test, and a clock."""

    def make_ticker(self, name, period_s, call):
        self.tick = call

    def now(self):
        return NOW

    def get_subscriptions_info_by_topic(self, topic):
        return []


class Vehicle:
    """ROS vehicle with its commands, and the time."""

    def __init__(self, monkeypatch, *, is_known=True, **parameters):
        values = {"sync": "latest", "stamp_source": "ros", "command_output": "auto", **parameters}
        self.node = Node(frame_prefix="d1/", source_timeout=1.0, **values)
        self.now_s = 100.0
        monkeypatch.setattr(commands, "elapsed_s", lambda: self.now_s)
        self.drone = FramedDrone(
            FrameSynchronizer(4, keeps_order=False, is_mono=True),
            read_attitude=lambda attitude: attitude,
            read_pixels=lambda image, constants: image,
            stamps_are_simulated=False,
        )
        if is_known:
            self.drone.set_constants(CONSTANTS)
        self.publisher = CommandPublisher(self.node, self.drone, AngleUnit.DEGREES, "imu/data")

    def show(self, stamp_s, *, is_sent=True):
        self.drone.frames.add("left", round(stamp_s * 1e9), bytes(6), 0.0)
        self.drone.frames.add("attitude", round(stamp_s * 1e9), SensorFrame(b"", b"", 0.0, 0.0, yaw=0.0), 0.0)
        if is_sent:
            assert self.drone.next_frame(0.0, 1.0)[0]

    def told(self):
        """Commands since the last call, as topics and messages."""
        told = list(self.node.published)
        self.node.published.clear()
        return told


@pytest.fixture
def make(monkeypatch):
    return lambda **options: Vehicle(monkeypatch, **options)


@pytest.fixture
def vehicle(make):
    return make()


def test_rates_have_the_body_frame_and_the_stamp_of_their_frame(vehicle):
    vehicle.publisher.publish(RatesAnswer(MotionParameters(10.0, -20.0, 30.0, 12.5), 3_500_000_000), 100.0)
    ((topic, message),) = vehicle.told()
    assert (topic, message.header.frame_id) == ("/cmd_rates", "d1/base_link")
    assert (message.header.stamp, message.thrust) == (Time(sec=3, nanosec=500_000_000), 12.5)
    rates = [math.degrees(rate) for rate in (message.roll_rate, message.pitch_rate, message.yaw_rate)]
    assert rates == pytest.approx([-20.0, 10.0, -30.0])


def test_velocities_go_to_cmd_vel_and_their_neutral_command_is_zero(vehicle):
    vehicle.publisher.publish(LevelVelocity(1.0, 0.5, 0.25, 0.125), 100.0)
    ((topic, twist),) = vehicle.told()
    assert (topic, twist.linear.x, twist.linear.y, twist.linear.z) == ("/cmd_vel", 1.0, -0.5, 0.25)
    vehicle.publisher.publish_neutral(VELOCITY)
    assert vehicle.told() == [("/cmd_vel", Twist())]


def test_a_level_drone_gets_zero_rates_and_the_thrust_that_carries_it(vehicle):
    vehicle.publisher.set_attitude(LEVEL)
    vehicle.publisher.publish_neutral(RATES)
    ((topic, message),) = vehicle.told()
    assert (topic, message.thrust) == ("/cmd_rates", HOVER_N)
    assert (message.roll_rate, message.pitch_rate, message.yaw_rate) == (0.0, 0.0, 0.0)
    assert message.header.stamp == NOW


@pytest.mark.parametrize(
    ("turned", "signs"), [(NOSE_DOWN, (0, -1, 0)), (BANKED_RIGHT, (-1, 0, 0))], ids=["nose down", "banked right"]
)
def test_a_tilted_drone_is_levelled_while_its_attitude_is_known(vehicle, turned, signs):
    vehicle.publisher.set_attitude(turned)
    vehicle.publisher.publish_neutral(RATES)
    vehicle.node.tick()
    vehicle.node.tick()
    told = vehicle.told()
    assert len(told) == 3
    for _, message in told:
        rates = (message.roll_rate, message.pitch_rate, message.yaw_rate)
        assert [(abs(rate) > 0.1) * math.copysign(1, rate) for rate in rates] == pytest.approx(signs)
        assert message.thrust == pytest.approx(HOVER_N / math.cos(TILT))
    vehicle.now_s += 0.31
    vehicle.node.tick()
    ((_, last),) = vehicle.told()
    assert (last.roll_rate, last.pitch_rate, last.yaw_rate, last.thrust) == (0.0, 0.0, 0.0, HOVER_N)
    vehicle.node.tick()
    assert vehicle.told() == []


def test_a_returning_operator_ends_the_levelling(vehicle):
    vehicle.publisher.set_attitude(NOSE_DOWN)
    vehicle.publisher.publish_neutral(RATES)
    vehicle.publisher.publish(RatesAnswer(MotionParameters(0.0, 0.0, 0.0, 1.0), 0), 100.0)
    vehicle.told()
    vehicle.node.tick()
    assert vehicle.told() == []


def test_the_effect_of_neutral_is_logged(vehicle):
    blind = vehicle.publisher.neutral_meaning
    assert "zero rates" in blind
    assert "/imu/data" in blind
    vehicle.publisher.set_attitude(LEVEL)
    assert vehicle.publisher.neutral_meaning == "level out"
    vehicle.publisher.choice.chosen = VELOCITY
    assert vehicle.publisher.neutral_meaning == "stop"


def test_no_command_is_published_before_drone_properties(make):
    vehicle = make(is_known=False)
    vehicle.publisher.publish_neutral(RATES)
    assert vehicle.told() == []


@pytest.mark.parametrize(("sync", "stamp_s"), [("lockstep", 5), ("latest", 6)])
def test_neutral_has_a_frame_stamp_in_simulated_time(make, sync, stamp_s):
    """In lockstep it is the command to the last frame."""
    vehicle = make(sync=sync, stamp_source="wire")
    vehicle.publisher.publish_neutral(RATES)
    assert vehicle.told() == []
    vehicle.show(5.0)
    vehicle.show(6.0, is_sent=False)
    vehicle.publisher.publish_neutral(RATES)
    ((_, message),) = vehicle.told()
    assert message.header.stamp == Time(sec=stamp_s)


def test_a_vehicle_that_gets_velocities_only_is_not_levelled_out(make):
    vehicle = make(command_output="cmd_vel")
    assert vehicle.publisher.choice.chosen == VELOCITY
    assert not hasattr(vehicle.node, "tick")  # there is no levelling
