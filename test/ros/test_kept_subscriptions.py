# SPDX-License-Identifier: Apache-2.0
"""The subscriptions that a node keeps until they are ended or cleaned up, without DDS."""

import contextlib
from types import SimpleNamespace

from drone_bridge.ros.node.configured_node import ConfiguredNode


class Node:
    """A ConfiguredNode as far as its subscriptions are concerned."""

    keep_subscription, end_subscriptions = ConfiguredNode.keep_subscription, ConfiguredNode.end_subscriptions
    clean_up = ConfiguredNode.clean_up

    def __init__(self):
        self.cleanup, self._kept_subscriptions, self.destroyed = contextlib.ExitStack(), [], []

    def resolve_topic_name(self, topic):
        return f"/{topic}"

    def destroy_subscription(self, subscription):
        self.destroyed.append(subscription.topic_name)


def test_a_topic_that_comes_and_goes_leaves_nothing_behind():
    node = Node()
    for _ in range(100):
        node.keep_subscription(SimpleNamespace(topic_name="/video"))
        node.end_subscriptions("video")
    assert node.destroyed == ["/video"] * 100
    assert not node._kept_subscriptions


def test_each_is_destroyed_once():
    node = Node()
    for topic in ("/video", "/odom", "/video"):
        node.keep_subscription(SimpleNamespace(topic_name=topic))
    node.end_subscriptions("video")
    assert node.destroyed == ["/video", "/video"]
    node.cleanup.callback(node.destroyed.append, "the rest")
    node.clean_up()
    node.clean_up()
    assert node.destroyed == ["/video", "/video", "the rest", "/odom"]
