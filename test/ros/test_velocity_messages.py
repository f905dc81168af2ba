# SPDX-License-Identifier: Apache-2.0
"""cmd_vel of other nodes: its type, its frame, and reports about another type."""

import math
from types import SimpleNamespace

import pytest
from commanded_node import commanded_nodes
from geometry_msgs.msg import Twist, TwistStamped

from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.commands.velocity_messages import VelocityFrames
from drone_bridge.ros.node.common_parameters import STAMPED_CMD_VEL
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater
from drone_bridge.ros.time import time_from_seconds


@pytest.fixture
def make_node(monkeypatch, tmp_path):
    return commanded_nodes(monkeypatch, tmp_path)


#: Type of a node's cmd_vel by its parameter, and the other one.
TYPES = {False: ("Twist", "TwistStamped"), True: ("TwistStamped", "Twist")}


def endpoint(number, kind):
    """Return a publisher or subscription of another node, as in the graph."""
    return SimpleNamespace(
        endpoint_gid=[number], topic_type=f"geometry_msgs/msg/{kind}", node_namespace="/a", node_name="other"
    )


def command(forward=0.0, left=0.0, turn=0.0, frame=""):
    message = TwistStamped()
    message.header.frame_id = frame
    message.twist.linear.x, message.twist.linear.y, message.twist.angular.z = forward, left, turn
    return message


@pytest.mark.parametrize("is_stamped", [False, True])
def test_a_publisher_of_the_other_type_is_told_of_once(make_node, is_stamped):
    node = make_node(**{STAMPED_CMD_VEL.name: is_stamped})
    CommandTopics(node).take_velocities()
    ours, other = TYPES[is_stamped]
    node.publishers = [endpoint(1, ours), endpoint(2, other)]
    for _ in range(3):
        node.pass_second()
    (line,) = node.logged
    assert "/a/other publishes /cmd_vel " in line
    assert f"geometry_msgs/msg/{other}," in line
    assert f"geometry_msgs/msg/{ours}:" in line
    assert STAMPED_CMD_VEL.name in line
    node.publishers = []
    node.pass_second()
    node.publishers = [endpoint(3, other)]
    node.pass_second()
    assert node.logged == [line, line]  # another one


@pytest.mark.parametrize("is_stamped", [False, True])
def test_a_server_tells_of_a_vehicle_that_takes_the_other_type(make_node, is_stamped):
    node = make_node()
    kind = TwistStamped if is_stamped else Twist
    publisher = node.make_publisher(kind, "cmd_vel", 1)
    ours, other = TYPES[is_stamped]
    node.get_subscriptions_info_by_topic = lambda topic: [endpoint(1, ours), endpoint(2, other)]
    NeutralRepeater(node, (publisher,), lambda: (publisher, kind()))
    node.pass_second()
    (line,) = node.logged
    assert "subscribes to /cmd_vel " in line
    assert f"geometry_msgs/msg/{other}," in line
    assert f"geometry_msgs/msg/{ours}:" in line


@pytest.mark.parametrize("is_stamped", [False, True])
def test_a_controller_publishes_the_type(is_stamped):
    sent = []
    node = SimpleNamespace(
        create_publisher=lambda kind, topic, qos, **_: SimpleNamespace(msg_type=kind, publish=sent.append),
        get_clock=lambda: SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: time_from_seconds(5.0))),
    )
    VelocityCommands(node, {STAMPED_CMD_VEL.name: is_stamped}).publish(BodyVelocity(1.0, turn=0.5))
    (message,) = sent
    assert type(message).__name__ == TYPES[is_stamped][0]
    twist = message.twist if is_stamped else message
    assert (twist.linear.x, twist.angular.z) == (1.0, 0.5)
    assert not is_stamped or message.header.stamp.sec == 5


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
