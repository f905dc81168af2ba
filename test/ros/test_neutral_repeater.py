# SPDX-License-Identifier: Apache-2.0
"""NeutralRepeater: commands of a server for the ROS vehicle after its operator has disconnected; without ROS."""

import threading
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped
from plain_node import PlainNode
from twists import twist

from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes
from drone_bridge.ros.commands.velocity_messages import velocity_from_twist
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.servers import velocity_publisher
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater
from drone_bridge.ros.servers.velocity_publisher import VelocityPublisher

FORWARD, ZERO = twist(forward=1.0), Twist()
RIVAL = twist(forward=0.5)


class Node(PlainNode):
    """Server among other commanders of the vehicle, with a fake clock."""

    def __init__(self, now_s, **parameters):
        super().__init__(**parameters)
        self._now_s = now_s
        self.rivals, self.heard = 0, {}  # of its own topic, and callbacks for their messages by topic
        self.followers = []  # names of nodes that subscribe to its own topic

    def make_timer(self, period_s, call):
        self._period_s, self._tick = period_s, call

    def when_activated(self, call):
        self.activate = call

    def get_name(self):
        return "tello_server"

    def get_subscriptions_info_by_topic(self, topic):
        names = [*self.followers, *([self.get_name()] if topic in self.heard else [])]
        return [SimpleNamespace(node_name=name, node_namespace="/") for name in names if topic == "/cmd_vel"]

    def count_publishers(self, topic):
        return (1 + self.rivals) * (topic == "/cmd_vel")

    def create_subscription(self, kind, topic, take, qos):
        self.heard[topic] = take

    def end_subscriptions(self, topic):
        del self.heard[topic]

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time))

    def wait(self, periods):
        """Return the publications in the following periods."""
        before = len(self.published)
        for _ in range(periods):
            self._now_s[0] += self._period_s
            self._tick()
        return [message for _, message in self.published[before:]]


@pytest.fixture
def node(clock):
    return Node(clock)


@pytest.mark.parametrize("follower", ["bridge", "recorder"])
def test_commands_without_a_follower_are_reported_to_an_operator(unknown, node, follower):
    node.wait(1)
    assert node.conditions["no_subscriber"] is None, "nobody is connected"
    node.report.is_open = True
    node.wait(1)
    assert "nothing subscribes to /cmd_vel" in node.conditions["no_subscriber"]
    node.followers = [follower]
    node.wait(1)
    assert (node.conditions["no_subscriber"] is None) is (follower == "bridge")


@pytest.fixture
def unknown(node):
    """Server that was just activated."""
    publisher = node.make_publisher(Twist, "cmd_vel", 1)
    word = NeutralRepeater(node, (publisher,), lambda: (publisher, Twist()))
    node.activate()
    return word


def test_the_last_command_is_delivered_before_the_link_has_ended(node):
    waited = []

    def publisher(name):
        fields = {"topic_name": f"/{name}", "msg_type": Twist, "wait_for_all_acked": lambda _: waited.append(name)}
        return SimpleNamespace(**fields)

    NeutralRepeater(node, (publisher("cmd_vel"), publisher("cmd_axes")), lambda: None)
    ProtocolNode.link_ended(node)
    assert waited == ["cmd_vel", "cmd_axes"]


@pytest.fixture
def word(node, unknown):
    """Command of an operator that steers."""
    unknown.publish(node.make_publisher(Twist, "cmd_vel", 1), FORWARD, 0.0)
    return unknown


def test_a_server_begins_with_neutral_as_soon_as_a_vehicle_follows(node, unknown):
    node.followers = ["recorder"]
    assert node.wait(3) == []
    assert unknown.age_s is None
    node.followers = ["recorder", "tello_bridge"]
    assert node.wait(3) == [ZERO] * 3
    node.activate()  # again
    assert node.wait(1) == [ZERO]


def test_a_server_does_not_begin_with_neutral_beside_a_live_commander(node, unknown):
    node.followers, node.rivals = ["tello_bridge"], 1
    assert node.wait(1) == []  # it listens first
    node.heard["/cmd_vel"](RIVAL)
    assert node.wait(5) == []
    assert not node.heard


def test_a_server_begins_with_neutral_beside_a_silent_commander(node, unknown):
    node.followers, node.rivals = ["tello_bridge"], 1
    assert node.wait(3) == [ZERO] * 2
    node.heard["/cmd_vel"](RIVAL)
    assert node.wait(2) == []


def test_immediate_operator_replaces_the_first_neutral_command(node, word):
    node.followers = ["tello_bridge"]
    assert node.wait(3) == []


def test_only_the_neutral_command_is_repeated(node, word):
    assert node.wait(5) == []
    word.publish_neutral()
    assert word.age_s == 0.0
    assert node.wait(5) == [ZERO] * 5


def test_it_is_repeated_until_its_time_is_over(node, word):
    node.parameters["neutral_time"] = 3.5
    word.publish_neutral()
    assert node.wait(10) == [ZERO] * 3
    assert word.age_s is None


def test_somebody_else_who_commands_ends_it(node, word):
    word.publish_neutral()
    node.rivals = 1
    assert node.wait(3) == [ZERO] * 2  # a new publisher is received before the next repetition
    node.heard["/cmd_vel"](ZERO)  # it has not commanded anything yet, or it is our own
    assert node.wait(2) == [ZERO] * 2
    node.heard["/cmd_vel"](RIVAL)
    assert node.wait(5) == []
    assert not node.heard


@pytest.mark.parametrize("is_stamped", [False, True])
def test_a_late_echo_of_our_own_command_does_not_end_it(node, is_stamped):
    publisher = node.make_publisher(TwistStamped if is_stamped else Twist, "cmd_vel", 1)
    word = NeutralRepeater(node, (publisher,), lambda: (publisher, Twist()))
    node.activate()
    word.publish_neutral()
    node.rivals = 1
    node.wait(1)
    word.publish(publisher, FORWARD, 0.0)
    _, echo = node.published[-1]
    word.publish(publisher, ZERO, 0.0)
    node.heard["/cmd_vel"](echo)
    assert len(node.wait(2)) == 2
    node.heard["/cmd_vel"](echo)  # a second later it is another publisher's
    assert node.wait(2) == []


def test_a_neutral_command_while_repeating_ends_is_repeated(node, word):
    class Parameters(dict):
        def __getitem__(self, name):
            if name == "neutral_time":
                neutral.start()
                neutral.join(0.5)  # time in which it may overtake
            return super().__getitem__(name)

    word.publish_neutral()
    neutral = threading.Thread(target=word.publish_neutral)
    usual, node.parameters = node.parameters, Parameters({**node.parameters, "neutral_time": 0.0})
    node.wait(1)
    neutral.join()
    node.parameters = usual
    assert word.age_s is not None


def test_neutral_is_repeated_and_the_operator_refused_while_held(node, word):
    node.parameters["neutral_time"] = 0.0
    node.hold.set(True)
    assert node.published[-1] == ("/cmd_vel", ZERO)
    publisher = node.make_publisher(Twist, "cmd_vel", 1)
    word.publish(publisher, FORWARD, 0.0)
    assert node.wait(2) == [ZERO] * 2
    node.hold.set(False)
    word.publish(publisher, FORWARD, 0.0)
    assert node.published[-1] == ("/cmd_vel", FORWARD)


def test_server_that_restarts_held_sends_neutral_without_a_commander(node):
    node.hold.set(True)
    node.rivals = 1
    publisher = node.make_publisher(Twist, "cmd_vel", 1)
    NeutralRepeater(node, (publisher,), lambda: (publisher, Twist()))
    node.activate()
    assert node.wait(3) == [ZERO] * 3


def test_no_command_follows_the_neutral_one_of_a_simultaneous_hold(node, word):
    def admits(topic):
        node.hold.set(True)  # the executor runs when the link's thread has just checked
        return True

    node.hold.admits = admits
    word.publish(node.make_publisher(Twist, "cmd_vel", 1), FORWARD, 0.0)
    assert [message for _, message in node.published] == [FORWARD, ZERO]
    assert word.age_s is not None


def test_shares_go_to_subscribers_and_velocity_followers_get_zero(node, clock, monkeypatch):
    are_taken = [False]
    monkeypatch.setattr(velocity_publisher, "followers", lambda node, topic: are_taken[0])
    commands = VelocityPublisher(node, "base_link")
    commands.publish(velocity_from_twist(FORWARD), Shares(pitch=0.5), 0.0)
    are_taken[0] = True
    clock[0] += 1.0
    commands.publish(velocity_from_twist(FORWARD), Shares(pitch=0.5), 0.0)
    (_, first), (_, second), (topic, axes) = node.published
    assert (first, second) == (FORWARD, ZERO)
    assert (topic, type(axes), axes.pitch, axes.header.frame_id) == ("/cmd_axes", CommandAxes, 0.5, "base_link")
