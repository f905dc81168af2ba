# SPDX-License-Identifier: Apache-2.0
"""cmd_vel: its type, which follows other nodes, and its frame."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
from commanded_node import commanded_nodes
from geometry_msgs.msg import Twist, TwistStamped
from plain_node import PlainNode
from twists import twist

from drone_bridge.controllers import commands
from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.ros.commands.cmd_vel_type import UNKNOWN_NODE, CmdVelPublisher
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.commands.velocity_messages import VelocityFrames
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater
from drone_bridge.ros.time import time_from_seconds


@pytest.fixture
def make_node(monkeypatch, tmp_path):
    return commanded_nodes(monkeypatch, tmp_path)


def endpoint(name, kind, topic="/cmd_vel"):
    """Return a publisher or subscription of another node, as in the graph."""
    return SimpleNamespace(
        topic=topic, topic_type=f"geometry_msgs/msg/{kind.__name__}", node_namespace="/a", node_name=name
    )


@pytest.fixture
def bridge(make_node):
    node = make_node()
    topics = CommandTopics(node, on_command=node.wake)
    topics.take_velocities()
    node.follow(topics)
    return node


def change_type(bridge, kind):
    bridge.publishers = [endpoint("teleop", kind)]
    bridge.pass_second()
    assert bridge.types["cmd_vel"] is kind


FORWARD = BodyVelocity(1.0)


def command(forward=0.0, left=0.0, turn=0.0, frame=""):
    message = TwistStamped()
    message.header.frame_id = frame
    message.twist.linear.x, message.twist.linear.y, message.twist.angular.z = forward, left, turn
    return message


def test_a_bridge_follows_the_type_of_its_publishers(bridge):
    for kind, message in ((TwistStamped, command(1.0)), (Twist, twist(forward=1.0)), (TwistStamped, command(1.0))):
        change_type(bridge, kind)
        assert bridge.send("cmd_vel", message)[1] == FORWARD
        assert bridge.conditions["other_type"] is None
    bridge.publishers = []
    bridge.pass_second()
    assert bridge.types["cmd_vel"] is TwistStamped
    bridge.arbiter.forget()
    assert bridge.send("cmd_vel", command(1.0), ago_s=0.6)[1] is None  # a stamp has an age
    assert "0.600 s old" in bridge.warned[-1]


def test_a_command_of_the_former_type_ends_at_the_change(bridge):
    bridge.send("cmd_vel", forward=1.0)
    bridge.wakes = 0
    change_type(bridge, TwistStamped)
    assert (bridge.decided()[1], bridge.wakes) == (None, 1)


@pytest.mark.parametrize("topic", ["~/helm", "cmd_vel_stamped"])
def test_a_change_of_cmd_vel_ends_no_command_of_another_topic(bridge, topic):
    bridge.send("cmd_vel", forward=2.0)
    bridge.send(topic, command(1.0))
    change_type(bridge, TwistStamped)
    assert bridge.decided()[1] == FORWARD


def test_the_link_s_thread_takes_the_other_type_and_no_message_of_the_former(bridge):
    bridge.intake.opened()
    bridge.send("cmd_vel", forward=1.0)
    bridge.posted.pop()(bridge.now_s)
    bridge.waiting["cmd_vel"].append(twist(forward=2.0))
    change_type(bridge, TwistStamped)
    assert bridge.decided()[1] is None
    message = command(1.0)
    message.header.stamp = bridge.stamp()
    bridge.waiting["cmd_vel"].append(message)
    assert bridge.decided()[1] == FORWARD


def test_while_held_the_type_changes_and_nothing_moves(bridge):
    bridge.call_hold(True)
    change_type(bridge, TwistStamped)
    assert bridge.send("cmd_vel", command(1.0))[1] is None
    bridge.call_hold(False)
    assert bridge.send("cmd_vel", command(1.0))[1] == FORWARD


@pytest.mark.parametrize("topic", ["/cmd_vel", "/cmd_vel_stamped"])
def test_publishers_of_another_type_are_an_obstacle(bridge, topic):
    ours, other = (Twist, TwistStamped) if topic == "/cmd_vel" else (TwistStamped, Twist)
    bridge.publishers = [endpoint("teleop", ours, topic), endpoint(UNKNOWN_NODE, other, topic)]
    bridge.pass_second()
    assert bridge.conditions["other_type"] is None  # its name comes in the next moment
    bridge.publishers[1:] = [endpoint("navigation", other, topic)]
    bridge.pass_second()
    reason = bridge.conditions["other_type"]
    assert f"{topic} has type geometry_msgs/msg/{ours.__name__} here;" in reason
    assert f"/a/navigation (geometry_msgs/msg/{other.__name__})" in reason
    assert "teleop" not in reason
    bridge.publishers.pop()
    bridge.pass_second()
    assert bridge.conditions["other_type"] is None


def test_a_server_that_follows_a_bridge_keeps_no_other_type_away(bridge):
    name = "tello_server"
    bridge.publishers = [endpoint(name, Twist), endpoint("teleop", TwistStamped)]
    bridge.publishers.append(endpoint(name, Twist, f"/a/{name}/hold_status"))
    bridge.pass_second()
    assert (bridge.types["cmd_vel"], bridge.conditions["other_type"]) == (TwistStamped, None)


class Graph(PlainNode):
    """Node among subscribers, with what it has sent by type, its timers and its log."""

    def __init__(self):
        super().__init__()
        self.sent, self.topics, self.timers, self.types, self.helms = [], [], [], {}, []

    def create_publisher(self, kind, topic, qos, **_):
        def publish(message):
            self.sent.append(message)
            self.topics.append(topic)

        return SimpleNamespace(msg_type=kind, topic_name=f"/{topic}", publish=publish)

    def get_subscriptions_info_by_topic(self, topic):
        return [each for each in self.subscribers if getattr(each, "topic", None) in (None, topic)]

    def count_subscribers(self, topic):
        return self.helms.count(topic)

    def make_publisher(self, kind, topic, qos):
        assert self.types.get(f"/{topic}", kind) is kind  # DDS allows one type of a topic
        return self.create_publisher(kind, topic, qos)

    def create_subscription(self, kind, topic, callback, qos):
        self.types[topic] = kind

    def end_subscriptions(self, topic):
        del self.types[topic]

    def count_publishers(self, topic):
        return 2 * (topic == "/cmd_vel")

    def when_activated(self, call):
        self.activate = call

    def publish(self, publisher, message, decided_s=0.0):
        publisher.publish(message)

    def make_timer(self, period_s, call):
        self.timers.append(call)

    def get_name(self):
        return "ours"

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: time_from_seconds(5.0)))


@pytest.fixture(params=["controller", "server"])
def publishing(request, monkeypatch):
    """Return a node that publishes cmd_vel, and a function that returns what it publishes in the next second."""
    node = Graph()
    monkeypatch.setattr(commands, "steady_timer", Graph.make_timer)
    if request.param == "controller":
        publish = partial(VelocityCommands(node).publish, BodyVelocity(1.0, turn=0.5))
    else:
        publisher = CmdVelPublisher(node, lambda kind: node.make_publisher(kind, "cmd_vel", 1))
        repeater = NeutralRepeater(node, (publisher,), lambda: (publisher, Twist()))
        publish = partial(repeater.publish, publisher, twist(forward=1.0, left_turn=0.5), 0.0)

    def next_sent():
        for each in node.timers:
            each()
        publish()
        return node.sent[-1]

    return node, next_sent


def test_a_publisher_follows_the_type_of_its_subscribers(publishing):
    node, next_sent = publishing
    assert isinstance(next_sent(), Twist)
    for kind in (TwistStamped, Twist, TwistStamped):
        node.subscribers = [endpoint("vehicle", kind), endpoint("recorder", Twist), endpoint("_ros2cli_1", Twist)]
        message = next_sent()
        assert type(message) is kind
        velocity = message.twist if kind is TwistStamped else message
        assert (velocity.linear.x, velocity.angular.z) == (1.0, 0.5)
        assert kind is Twist or message.header.stamp.sec == 5
    assert node.logged == []


def test_a_publisher_reports_subscribers_of_two_types_once(publishing):
    node, next_sent = publishing
    node.subscribers = [endpoint("vehicle", Twist), endpoint("other", TwistStamped)]
    for _ in range(3):
        assert isinstance(next_sent(), Twist)
    (line,) = node.logged
    assert " has type geometry_msgs/msg/Twist here;" in line
    assert "/a/other (geometry_msgs/msg/TwistStamped)" in line


GOAL = "/cmd_vel_goal"


@pytest.mark.parametrize(
    ("followed", "topic"),
    [
        ([], GOAL),
        ([("bridge", GOAL), ("bridge", "/cmd_vel")], GOAL),
        ([("rover", "/cmd_vel")], "cmd_vel"),
        ([("server", GOAL), ("rover", "/cmd_vel")], "cmd_vel"),
    ],
)
def test_a_controller_commands_other_vehicles_than_bridges_on_cmd_vel(monkeypatch, followed, topic):
    node = Graph()
    monkeypatch.setattr(commands, "steady_timer", Graph.make_timer)
    controller = VelocityCommands(node)
    node.subscribers = [endpoint(name, Twist, at) for name, at in followed]
    node.helms = ["/a/bridge/helm"]
    node.timers[0]()
    for lands in (False, True):
        controller.publish(lands=lands)
    assert node.topics == [topic, "/cmd_vel_landing" if topic == GOAL else topic]


@pytest.mark.parametrize("own", [True, False])
def test_a_server_listens_to_other_publishers_with_their_type(own):
    node = Graph()
    publisher = CmdVelPublisher(node, lambda kind: node.make_publisher(kind, "cmd_vel" if own else "other", 1))
    NeutralRepeater(node, (publisher,), lambda: None)
    node.activate()
    (tick,) = node.timers
    if own:
        tick()
        assert node.types == {"/cmd_vel": Twist}
        node.subscribers = [endpoint("vehicle", TwistStamped)]
    else:
        node.publishers = [endpoint("teleop", TwistStamped)]
    tick()
    assert node.types == {"/cmd_vel": TwistStamped}


@pytest.mark.parametrize("frame", ["odom", "map"])
def test_the_worlds_x_is_to_the_right_of_a_body_that_looks_along_y(frame):
    frames = VelocityFrames("base_link", {"odom", "map"}, lambda: math.pi / 2)
    message = command(1.0, 0.5, 0.2, frame)
    message.twist.linear.z, message.twist.angular.x = 0.3, 0.1
    velocity = frames.in_body(message)
    assert velocity.linear == pytest.approx((0.5, -1.0, 0.3))
    assert velocity.angular == pytest.approx((0.0, -0.1, 0.2))


def test_a_velocity_that_is_beyond_numbers_in_the_bodys_axes_is_refused():
    frames = VelocityFrames("base_link", {"odom"}, lambda: math.pi / 4)
    assert frames.in_body(command(1e308, 1e308, frame="base_link")).linear == (1e308, 1e308, 0.0)
    with pytest.raises(ValueError, match="odom"):
        frames.in_body(command(1.7e308, 1.7e308, frame="odom"))


def test_the_body_is_named_with_or_without_the_prefix_of_its_frames():
    frames = VelocityFrames("d1/base_link", {"d1/odom"}, lambda: 0.0, "base_link")
    for frame in ("", "base_link", "d1/base_link"):
        assert frames.in_body(command(1.0, 0.0, frame=frame)).linear == (1.0, 0.0, 0.0)
    for frame in ("d2/base_link", "odom"):
        with pytest.raises(ValueError, match="d1/base_link"):
            frames.in_body(command(1.0, 0.0, frame=frame))
