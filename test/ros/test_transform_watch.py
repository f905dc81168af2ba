# SPDX-License-Identifier: Apache-2.0
"""Another publisher of a node's transforms on /tf, without DDS."""

from types import SimpleNamespace

import pytest
from geometry_msgs.msg import TransformStamped
from plain_node import PlainNode
from tf2_msgs.msg import TFMessage
from waiting_messages import WaitingMessages

from drone_bridge.ros.node import transform_watch
from drone_bridge.ros.node.transform_watch import GLANCE, LOOKS, REST, WatchedTransforms


def moved(child, x):
    message = TFMessage(transforms=[TransformStamped(child_frame_id=child)])
    message.transforms[0].transform.translation.x = x
    return message


class Node(PlainNode):
    """Node whose own messages come back, as by DDS."""

    def __init__(self, *others):
        super().__init__()
        self.publishers = [SimpleNamespace(node_name=each, node_namespace="/") for each in ("bridge", *others)]
        self.waiting, self.subscribed, self.ended, self.woken = [], 0, 0, 0

    def get_name(self):
        return "bridge"

    def make_guard_condition(self, call):
        def trigger():
            self.woken += 1
            call()

        return SimpleNamespace(trigger=trigger)

    def create_subscription(self, kind, topic, call, qos, **_):
        self.subscribed += 1
        return WaitingMessages(kind, qos, self.waiting)

    def end_subscriptions(self, topic):
        self.ended += 1


@pytest.mark.parametrize(
    ("child", "x", "facts"),
    [("base_link", 1.1, {"frame": "base_link", "nodes": "/ekf or /rsp"}), ("base_link", 1.0, None), ("laser", 1, None)],
)
def test_a_transform_that_is_not_its_own_is_found(child, x, facts):
    node = Node("ekf", "rsp", "_ros2cli_1")
    watch = WatchedTransforms(node, SimpleNamespace(publish=node.waiting.append))
    for _ in range(2):
        watch.find_others()
        watch.publish(moved("base_link", 1.0))
        node.waiting.append(moved(child, float(x)))
    watch.find_others()
    assert watch.facts == facts
    for _ in range(LOOKS):
        watch.find_others()
    assert (watch.facts, node.subscribed, node.ended > 0) == (None, 1, facts is None)


def test_a_transform_that_begins_long_after_its_node_is_found():
    node = Node("ekf")
    watch = WatchedTransforms(node, SimpleNamespace(publish=node.waiting.append))
    for _ in range(10 * LOOKS):
        watch.find_others()
        watch.publish(moved("base_link", 1.0))
        assert watch.facts is None
    assert node.subscribed == 1 + 9 * LOOKS // (GLANCE + REST)
    found = []
    for _ in range(GLANCE + REST):
        node.waiting.append(moved("base_link", 1.1))
        watch.find_others()
        found.append(watch.facts)
    assert {"frame": "base_link", "nodes": "/ekf"} in found


def test_a_transform_that_is_published_during_a_look_is_its_own(monkeypatch):
    node = Node("ekf")
    watch = WatchedTransforms(node, SimpleNamespace(publish=node.waiting.append))
    take = transform_watch.arrived

    def publish_and_take(*words):
        watch.publish(moved("base_link", 1.1))
        yield from take(*words)

    monkeypatch.setattr(transform_watch, "arrived", publish_and_take)
    for _ in range(2):
        watch.find_others()
        watch.publish(moved("base_link", 1.0))
    assert watch.facts is None


def test_a_node_that_publishes_transforms_alone_wakes_nothing():
    node = Node()
    watch = WatchedTransforms(node, SimpleNamespace(publish=node.waiting.append))
    watch.find_others()
    watch.publish(moved("base_link", 1.0))
    assert (node.subscribed, len(watch._own), node.woken) == (0, 0, 0)
