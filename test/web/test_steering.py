# SPDX-License-Identifier: Apache-2.0
"""Steering through web_bridge by a pilot without a browser: published commands, and stops of a vehicle."""

import signal
import threading
import time

import pytest
from geometry_msgs.msg import TwistStamped
from ros_session import TIMEOUT_S, module_ros, wait_until
from web_viewer import Network, Pilot, web_bridge

from drone_bridge.ros.time import seconds_of
from drone_bridge.tools.web.helm import MAX_AGE_S

TOPIC = "/rover/cmd_vel_stamped"
#: Number of tokens sent while a command would be in force twice over.
TOKENS = 10
STILL = TwistStamped().twist


class Commands:
    """Commands for a vehicle."""

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
    wait_until(lambda: pilot.push(**(motion or {"x": 1.0})) or commands.is_moving, "a vehicle that moves")


def assert_nothing_more_moves(bridge, commands):
    """Assert that the server moves nothing while it sends tokens to a viewer."""
    before = len(commands.moving)
    with Pilot(bridge.address) as watcher:
        for _ in range(TOKENS):
            watcher.next_token()
    assert commands.moving[before:] == []


def test_a_command_is_published_with_a_stamp_and_in_the_units_of_ros(pilot, commands, ros):
    began = ros.node.get_clock().now().to_msg()
    steer_until_it_moves(pilot, commands, x=0.5, y=-1.0, z=0.25, yaw=2.0)
    message = commands.moving[0]
    twist = message.twist
    assert (twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z) == (0.5, -1.0, 0.25, 1.0)
    assert began.sec <= message.header.stamp.sec <= ros.node.get_clock().now().to_msg().sec
    ros.set_parameters("web_bridge", max_speed=0.2)

    def is_followed():
        pilot.steer()  # releases the stick, as required after a delay
        pilot.steer(x=1.0)
        return commands.moving[-1].twist.linear.x == 0.2

    wait_until(is_followed, "the new maximum")
    ros.set_parameters("web_bridge", max_speed=1.0)


def test_stopped_network_stops_the_vehicle_and_late_commands_are_ignored(bridge, commands):
    with Network(bridge.address) as network, Pilot(network.address) as pilot:
        pilot.take(TOPIC)
        steer_until_it_moves(pilot, commands)
        network.works.clear()
        for _ in range(20):
            pilot.steer(token=pilot.token, x=1.0)
        commands.wait(is_moving=False)
        network.works.set()
        pilot.next_token()
        pilot.steer(x=1.0)  # the stick is still deflected
        pilot.wait_for(lambda: pilot.refusals, "a refusal")
        assert_nothing_more_moves(bridge, commands)


def test_a_server_that_is_stopped_and_goes_on_moves_nothing(bridge, pilot, commands):
    steer_until_it_moves(pilot, commands)
    bridge.send(signal.SIGSTOP)
    try:
        for _ in range(20):
            pilot.steer(token=pilot.token, x=1.0)
        time.sleep(2 * MAX_AGE_S)
    finally:
        went_on_s = time.time()
        bridge.send(signal.SIGCONT)
    pilot.wait_for(lambda: pilot.refusals, "a refusal")
    commands.wait(is_moving=False)
    # Commands from before the suspension have old stamps, and a bridge refuses them.
    assert not [each for each in commands.moving if seconds_of(each.header.stamp) >= went_on_s]
    assert_nothing_more_moves(bridge, commands)
