# SPDX-License-Identifier: Apache-2.0
"""Steering through web_bridge by a pilot who is no browser: what is published, and what stops a vehicle."""

import threading

import pytest
from geometry_msgs.msg import TwistStamped
from ros_session import TIMEOUT_S, module_ros, wait_until
from web_viewer import Network, Pilot, web_bridge

TOPIC = "/rover/cmd_vel_stamped"
#: Given out while a command would be in force twice over.
TOKENS = 10
STILL = TwistStamped().twist


class Commands:
    """What a vehicle is told."""

    def __init__(self, ros):
        self.came = []
        self._changed = threading.Condition()
        self.subscription = ros.node.create_subscription(TwistStamped, TOPIC, self._take, 10)

    def _take(self, message):
        with self._changed:
            self.came.append(message)
            self._changed.notify_all()

    @property
    def is_moving(self):
        return bool(self.came) and self.came[-1].twist != STILL

    @property
    def moving(self):
        return [message for message in self.came if message.twist != STILL]

    def wait(self, is_moving, timeout_s=TIMEOUT_S):
        with self._changed:
            assert self._changed.wait_for(lambda: self.is_moving == is_moving, timeout_s), self.came[-3:]


@pytest.fixture(scope="module")
def bridge():
    with web_bridge() as process:
        yield process


ros = module_ros("rover")


@pytest.fixture(scope="module")
def vehicle(ros):
    return Commands(ros)


@pytest.fixture
def commands(vehicle):
    vehicle.came.clear()
    return vehicle


@pytest.fixture
def pilot(bridge, commands):
    with Pilot(bridge.address) as pilot:
        pilot.take(TOPIC)
        yield pilot


def steer_until_it_moves(pilot, commands, **motion):
    wait_until(lambda: pilot.steer(**(motion or {"x": 1.0})) or commands.is_moving, "a vehicle that moves")


def assert_nothing_more_moves(bridge, commands):
    """Assert that the server moves nothing while it gives tokens to somebody who only watches."""
    before = len(commands.moving)
    with Pilot(bridge.address) as watcher:
        for _ in range(TOKENS):
            watcher.next_token()
    assert commands.moving[before:] == []


def test_a_command_is_published_with_a_stamp_and_in_the_units_of_ros(pilot, commands, ros):
    steer_until_it_moves(pilot, commands, x=0.5, y=-1.0, z=0.25, yaw=2.0)
    message = commands.moving[0]
    twist = message.twist
    assert (twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z) == (0.5, -1.0, 0.25, 1.0)
    now = ros.node.get_clock().now().to_msg()
    assert 0 <= now.sec - message.header.stamp.sec <= 2
    ros.set_parameters("web_bridge", max_speed=0.2)

    def is_followed():
        pilot.steer()  # lets go, as a pilot has to who was held up
        pilot.steer(x=1.0)
        return commands.moving[-1].twist.linear.x == 0.2

    wait_until(is_followed, "the new maximum")
    ros.set_parameters("web_bridge", max_speed=1.0)


@pytest.mark.parametrize("way", ["neutral", "release", "leave", "silence"])
def test_the_vehicle_stops_when_the_pilot_lets_go_or_is_lost(bridge, pilot, commands, way):
    steer_until_it_moves(pilot, commands)
    pilot.steer(x=1.0)
    if way == "neutral":
        pilot.steer(token=pilot.token)
    elif way == "release":
        pilot.send(op="release")
    elif way == "leave":
        pilot.connection.close()
    commands.wait(is_moving=False)
    assert_nothing_more_moves(bridge, commands)


def test_a_pilot_who_was_silent_while_moving_has_to_release_first(pilot, commands):
    steer_until_it_moves(pilot, commands)
    commands.wait(is_moving=False)
    for _ in range(5):
        pilot.steer(x=1.0)
    pilot.wait_for(lambda: pilot.refusals, "a refusal")
    assert "let go of the stick" in pilot.refusals[-1]
    assert not commands.is_moving
    pilot.steer()
    steer_until_it_moves(pilot, commands)


def test_a_pilot_who_is_silent_for_long_loses_the_helm_and_is_told(pilot):
    pilot.wait_for(lambda: pilot.refusals, "the end of the lease")
    assert "You have lost the helm" in pilot.refusals[0]
    pilot.wait_for(lambda: pilot.vehicles[TOPIC]["pilot"] is None, "a free helm")


def test_commands_that_were_stuck_move_nothing(bridge, pilot, commands):
    old = pilot.next_token()
    for _ in range(5):
        pilot.next_token()
    for _ in range(3):
        pilot.steer(token=old, x=1.0)
    pilot.wait_for(lambda: pilot.refusals, "a refusal")
    assert "0.3 s is allowed" in pilot.refusals[0]
    assert_nothing_more_moves(bridge, commands)
    assert not commands.moving


def test_a_second_pilot_is_refused_and_told_and_may_follow(bridge, pilot, commands):
    with Pilot(bridge.address) as other:
        other.wait_for(lambda: other.vehicles.get(TOPIC, {}).get("pilot") == "other", "that somebody steers")
        other.send(op="take", vehicle=TOPIC)
        other.wait_for(lambda: other.refusals, "a refusal")
        assert "Somebody else is steering" in other.refusals[0]
        other.steer(x=1.0)
        assert_nothing_more_moves(bridge, commands)
        pilot.send(op="release")
        other.wait_for(lambda: other.vehicles[TOPIC]["pilot"] is None, "a free helm")
        other.take(TOPIC)
        steer_until_it_moves(other, commands)


def test_the_helm_is_asked_for_and_handed_over_and_whoever_has_it_is_named(bridge, pilot, commands):
    with Pilot(bridge.address) as other:
        other.send(op="hello", name="Bob")
        other.wait_for(lambda: TOPIC in other.vehicles, "the vehicle")
        other.send(op="ask", vehicle=TOPIC)
        (asked,) = pilot.wait_for(lambda: pilot.vehicles[TOPIC]["asked"], "the question")
        assert (asked["name"], asked["is_you"]) == ("Bob", False)
        pilot.send(op="keep")
        other.wait_for(lambda: other.refusals, "an answer")
        assert "keeps the helm" in other.refusals[0]
        pilot.send(op="release")
        other.wait_for(lambda: other.vehicles[TOPIC]["pilot"] is None, "a free helm")
        other.take(TOPIC)
        pilot.wait_for(lambda: pilot.vehicles[TOPIC]["pilot_name"] == "Bob", "Bob's name")
        pilot.send(op="ask", vehicle=TOPIC)
        (asked,) = other.wait_for(lambda: other.vehicles[TOPIC]["asked"], "the question")
        other.send(op="hand_over", to=asked["number"])
        pilot.wait_for(lambda: pilot.vehicles[TOPIC]["pilot"] == "you", "the helm")
        steer_until_it_moves(pilot, commands)


def test_a_refusal_that_goes_on_is_told_again(pilot, commands):
    for _ in range(15):
        pilot.next_token()
        pilot.steer(token=1, x=1.0)
    assert len(pilot.refusals) >= 2
    assert not any("inf" in each for each in pilot.refusals)


def test_a_network_that_stops_stops_the_vehicle_and_delayed_commands_move_nothing(bridge, commands):
    with Network(bridge.address) as network, Pilot(network.address) as pilot:
        pilot.take(TOPIC)
        steer_until_it_moves(pilot, commands)
        network.works.clear()
        for _ in range(20):
            pilot.steer(token=pilot.token, x=1.0)
        commands.wait(is_moving=False)
        network.works.set()
        pilot.next_token()
        pilot.steer(x=1.0)  # the stick is still held
        pilot.wait_for(lambda: pilot.refusals, "a refusal")
        assert_nothing_more_moves(bridge, commands)


def test_the_server_s_end_stops_the_vehicle(ros, commands):
    with web_bridge() as process, Pilot(process.address) as pilot:
        pilot.take(TOPIC)
        steer_until_it_moves(pilot, commands)
        assert process.stop() == 0
        commands.wait(is_moving=False)


def test_a_vehicle_that_goes_takes_the_helm_with_it(bridge, ros, pilot, commands):
    ros.node.destroy_subscription(commands.subscription)
    pilot.wait_for(lambda: not pilot.vehicles, "the end of the vehicle")
    pilot.steer(x=1.0)
    pilot.wait_for(lambda: pilot.refusals, "a refusal")
