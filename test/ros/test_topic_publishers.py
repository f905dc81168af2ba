# SPDX-License-Identifier: Apache-2.0
"""Topics of a table: messages are created only for subscribers, and in order."""

from collections import Counter
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped

from drone_bridge.ros.topics.table import Topic
from drone_bridge.ros.topics.topic_publishers import TopicPublishers


class Node:
    """Node with subscribers on some topics."""

    def __init__(self, *wanted):
        self.subscribed = set(wanted)
        self.asked = []
        self.published = []
        self.parameters = {"publish_tf": False}
        self.report = SimpleNamespace(counts=Counter())

    def make_publisher(self, message_type, topic, qos):
        return topic

    def publish(self, publisher, message):
        self.published.append((publisher, message))

    def is_wanted(self, publisher):
        self.asked.append(publisher)
        return publisher in self.subscribed

    def publish_all(self, messages):
        self.published += messages


@pytest.fixture
def node():
    return Node("pose")


def row(topic, of=dict, **options):
    """Topic whose message is in a wire message under the topic's name."""
    return Topic(topic, object, of=of, to_ros=lambda translation, wire, stamp: wire[topic], **options)


ROWS = (row("pose"), row("image"))


def publishers_of(node, period_s, rows=ROWS):
    return TopicPublishers(node, rows, None, period_s=period_s)


def test_messages_are_made_only_for_subscribers(node):
    publishers_of(node, 60.0).publish({"pose": 1}, Time())  # creating an image would raise KeyError
    assert node.published == [("pose", 1)]


def test_topics_without_a_message_are_not_published(node):
    publishers_of(node, 60.0).publish({"pose": None}, Time())
    assert node.published == []


def test_subscribers_are_counted_once_per_period(node):
    publishers = publishers_of(node, 60.0)
    for number in range(3):
        publishers.publish({"pose": number}, Time())
    assert len(node.published) == 3
    assert node.asked == ["pose", "image"]


@pytest.mark.parametrize(("period_s", "is_requested"), [(0.0, False), (60.0, True)])
def test_a_new_subscriber_is_found_after_the_period_or_at_once_on_request(node, period_s, is_requested):
    publishers = publishers_of(node, period_s)
    publishers.publish({"pose": 1}, Time())
    node.subscribed = {"image"}
    if is_requested:
        publishers.restart()
    publishers.publish({"image": 2}, Time())
    assert node.published == [("pose", 1), ("image", 2)]


def test_some_topics_publish_only_changes_until_the_next_start(node):
    publishers = publishers_of(node, 60.0, [row("landed", only_changes=True)])
    for is_landed in (True, True, None, False):
        publishers.publish({"landed": is_landed}, Time())
    assert node.published == [("landed", True), ("landed", False)]
    publishers.restart()
    publishers.publish({"landed": False}, Time())
    assert node.published[2:] == [("landed", False)]


def test_slow_messages_are_created_after_the_others_are_published(node):
    node.subscribed, published = {"pose", "image"}, []
    slow = Topic("image", object, of=dict, to_ros=lambda *_: published.extend(node.published) or 2, is_slow=True)
    publishers_of(node, 60.0, [slow, row("pose")]).publish({"pose": 1}, Time())
    assert published == [("pose", 1)]
    assert node.published == [("pose", 1), ("image", 2)]


def test_rows_of_another_wire_message_or_of_a_false_parameter_are_left_out(node):
    rows = [row("pose"), row("pose", of=list), row("odom", if_parameter="publish_tf"), Topic("cmd", object, of=dict)]
    node.subscribed = {"pose", "odom", "cmd"}
    publishers = publishers_of(node, 60.0, rows)
    publishers.publish({"pose": 1}, Time())
    publishers.publish((), Time())
    assert node.published == [("pose", 1)]


def test_messages_are_counted(node):
    publishers = publishers_of(node, 60.0, [row("pose", count="poses")])
    for pose in (1, None, 2):
        publishers.publish({"pose": pose}, Time())
    assert node.report.counts == {"poses": 2}


def test_static_transforms_come_first_and_once(node):
    publishers = TopicPublishers(node, [row("pose")], None, [TransformStamped(child_frame_id="camera")])
    for pose in (1, 2):
        publishers.publish({"pose": pose}, Time(sec=7))
    assert [topic for topic, _ in node.published] == ["/tf_static", "pose", "pose"]
    (transform,) = node.published[0][1].transforms
    assert (transform.child_frame_id, transform.header.stamp) == ("camera", Time(sec=7))
