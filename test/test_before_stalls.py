# SPDX-License-Identifier: Apache-2.0
"""What was asked for before this process stood still: nothing of it is carried out but hold, neutral and landing."""

import time

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped
from plain_node import PlainNode
from twists import twist

from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.msg import CommandAxes, CommandRates
from drone_bridge.ros.command_topics import CommandTopics
from drone_bridge.ros.stall_watch import PROCESS


class Stalls:
    """Whether this process has stood still, and when."""

    def __init__(self):
        self.resumed_s = -1e9

    def running_s(self):
        return time.monotonic() - self.resumed_s

    def stood_still_since(self, moment_s):
        return moment_s <= self.resumed_s

    def happen(self):
        self.resumed_s = time.monotonic()


@pytest.fixture
def stalls(monkeypatch):
    """stalls.happen() has this process stand still, for as long as it takes to say so."""
    stalls = Stalls()
    for name in ("running_s", "stood_still_since"):
        monkeypatch.setattr(PROCESS, name, getattr(stalls, name))
    monkeypatch.setattr(PROCESS, "clock", time.monotonic)
    return stalls


class Taking(PlainNode):
    """Keeps the callbacks of subscriptions, by topic."""

    def __init__(self):
        super().__init__(frame_prefix="")
        self.observed, self.take = ObservedMotion(time.monotonic), {}

    def make_subscription(self, kind, topic, callback, qos):
        self.take[topic] = callback

    def get_logger(self):
        return None

    def undelivered(self, topic):
        return None


COMMANDS = {
    "cmd_vel": twist(forward=1.0),
    "cmd_vel_stamped": TwistStamped(twist=twist(forward=1.0)),
    "~/helm": TwistStamped(twist=twist(forward=1.0)),
    "cmd_axes": CommandAxes(pitch=1.0),
    "cmd_rates": CommandRates(thrust=1.0),
}


@pytest.mark.parametrize("topic", COMMANDS)
def test_commands_of_every_stream(stalls, topic):
    node = Taking()
    commands = CommandTopics(node, now=Time)
    commands.take_velocities(lambda velocity: (velocity, True))
    for raw in ("cmd_axes", "cmd_rates"):
        commands.take(raw, type(COMMANDS[raw]), lambda message: message)
    node.take[topic](COMMANDS[topic])
    assert commands.arbiter.newest is not None
    commands.arbiter.forget()
    stalls.happen()
    for _ in range(2):
        node.take[topic](COMMANDS[topic])
    assert commands.arbiter.newest is None
    assert "this process stood still" in node.warned[-1]
    stalls.resumed_s -= 1.0  # a second later
    node.take[topic](COMMANDS[topic])
    assert commands.arbiter.newest.command not in (None, Twist())
