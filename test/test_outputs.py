# SPDX-License-Identifier: Apache-2.0
"""Topics whose messages are made only while somebody subscribes."""

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.ros.outputs import Output, Outputs


class Node:
    """Where some topics have subscribers."""

    def __init__(self, *wanted):
        self.subscribed = set(wanted)
        self.asked = []
        self.published = []

    def is_wanted(self, publisher):
        self.asked.append(publisher)
        return publisher in self.subscribed

    def publish_all(self, messages):
        self.published += messages


@pytest.fixture
def node():
    return Node("pose")


def outputs_of(node, period_s):
    topics = ("pose", "image")
    return Outputs(
        node, [Output(topic, lambda source, stamp, topic=topic: source[topic]) for topic in topics], period_s
    )


def test_messages_are_made_only_for_subscribers(node):
    outputs_of(node, 60.0).publish({"pose": 1}, Time())  # it would be a KeyError to make an image
    assert node.published == [("pose", 1)]


def test_outputs_without_a_message_are_not_published(node):
    outputs_of(node, 60.0).publish({"pose": None}, Time())
    assert node.published == []


def test_subscribers_are_counted_once_per_period(node):
    outputs = outputs_of(node, 60.0)
    for number in range(3):
        outputs.publish({"pose": number}, Time())
    assert len(node.published) == 3
    assert node.asked == ["pose", "image"]


def test_a_new_subscriber_is_found_after_the_period(node):
    outputs = outputs_of(node, 0.0)
    outputs.publish({"pose": 1}, Time())
    node.subscribed = {"image"}
    outputs.publish({"image": 2}, Time())
    assert node.published == [("pose", 1), ("image", 2)]


def test_a_new_subscriber_is_found_at_once_when_that_matters(node):
    outputs = outputs_of(node, 60.0)
    outputs.publish({"pose": 1}, Time())
    node.subscribed = {"image"}
    outputs.recheck()
    outputs.publish({"image": 2}, Time())
    assert node.published == [("pose", 1), ("image", 2)]
