# SPDX-License-Identifier: Apache-2.0
"""Publishers that offer less than a subscription requests are received anyway."""

import re
from types import SimpleNamespace

import pytest
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from ros_session import Inbox, module_ros, wait_until
from std_msgs.msg import Int32

from drone_bridge.ros.streams import TopicStream
from drone_bridge.ros.subscriptions import subscribe

ros = module_ros()

KEPT, NOT_KEPT = DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE
RELIABLE, BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT


def qos(durability=KEPT, reliability=RELIABLE):
    return QoSProfile(depth=1, durability=durability, reliability=reliability)


@pytest.fixture
def topic(request):
    return "topic_" + "".join(letter if letter.isalnum() else "_" for letter in request.node.name)


@pytest.fixture
def hear(ros, topic):
    """Subscribe with a profile; return the received messages."""

    def start(wanted):
        inbox = Inbox()
        subscribe(ros.node, Int32, topic, inbox.put, wanted)
        return inbox

    return start


@pytest.fixture
def lacking(topic, capfd):
    """Return the policies that are not offered, by the log."""
    return lambda: re.findall(rf"/{topic} is published without (\w+) ", capfd.readouterr().err)


@pytest.mark.parametrize("subscribed_first", [True, False])
@pytest.mark.parametrize(
    ("durability", "reliability", "missing"),
    [
        (NOT_KEPT, RELIABLE, ["durability"]),
        (KEPT, BEST_EFFORT, ["reliability"]),
        (NOT_KEPT, BEST_EFFORT, ["durability", "reliability"]),
    ],
)
def test_a_publisher_with_weaker_qos_is_received(
    ros, topic, hear, lacking, subscribed_first, durability, reliability, missing
):
    inbox = hear(qos()) if subscribed_first else None
    publisher = ros.node.create_publisher(Int32, topic, qos(durability, reliability))
    if not subscribed_first:
        inbox = hear(qos())
    # Both ends discover each other at different times, and earlier volatile messages are lost.
    wait_until(lambda: publisher.publish(Int32(data=7)) or len(inbox), "what it says to arrive")
    assert sorted(lacking()) == missing


def test_earlier_messages_of_a_latched_publisher_are_received_once(ros, topic, hear, lacking):
    publisher = ros.node.create_publisher(Int32, topic, qos())
    publisher.publish(Int32(data=1))
    inbox = hear(qos())
    assert inbox.wait().data == 1
    for number in (2, 3):
        publisher.publish(Int32(data=number))
        assert inbox.wait().data == number
    assert lacking() == []


def test_a_depth_is_enough_and_many_publishers_are_warned_of_once(ros, topic, hear, lacking):
    inbox = hear(10)
    for number in range(3):
        publisher = ros.node.create_publisher(Int32, topic, qos(NOT_KEPT, BEST_EFFORT))
        wait_until(lambda publisher=publisher, number=number: publisher.publish(Int32(data=number)) or len(inbox), "it")
        inbox.wait(lambda message, number=number: message.data == number)
    assert lacking() == ["reliability"]


@pytest.mark.parametrize("offered", [qos(), qos(NOT_KEPT, BEST_EFFORT)])
def test_polled_topic_returns_the_newest_message_of_any_publisher_once(ros, topic, offered):
    polled = TopicStream(ros.node, Int32, topic)
    assert polled.take() is None
    publisher = ros.node.create_publisher(Int32, topic, offered)
    wait_until(publisher.get_subscription_count, "the subscription")
    for number in range(3):
        publisher.publish(Int32(data=number))
    wait_until(lambda: polled.take() == Int32(data=2), "the newest message")
    assert polled.take() is None


def test_only_the_first_subscription_may_be_overridden():
    """Its parameters exist once per topic."""
    made = []

    def create(kind, topic, callback, profile, *, event_callbacks, qos_overriding_options, **_):
        made.append((profile.durability, qos_overriding_options))
        return SimpleNamespace(qos_profile=profile, events=event_callbacks)

    kept, logger = [], SimpleNamespace(info=lambda sentence: None)
    node = SimpleNamespace(create_subscription=create, resolve_topic_name=str, get_logger=lambda: logger)
    subscribe(node, Int32, "/a", print, qos(), overridable="overridable", keep=kept.append)
    for _ in range(2):
        kept[0].events.incompatible_qos(SimpleNamespace(last_policy_kind=QoSPolicyKind.DURABILITY))
    assert made == [(KEPT, "overridable"), (NOT_KEPT, None)]
