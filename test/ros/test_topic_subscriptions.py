# SPDX-License-Identifier: Apache-2.0
"""Validity of a server's received messages, with a fake clock."""

import pytest
from plain_node import PlainNode
from std_msgs.msg import Int32

from drone_bridge.ros.servers import topic_subscriptions
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.topics.table import Topic


class Node(PlainNode):
    """Records the callbacks of subscriptions, by topic."""

    def __init__(self):
        super().__init__(source_timeout=1.0)
        self.take = {}

    def make_subscription(self, kind, topic, callback, qos):
        self.take[topic] = callback


def number(_, message):
    return message.data


@pytest.mark.parametrize(
    ("row", "counts_for_s"), [({}, 1.0), ({"fresh_s": 0.25}, 0.25), ({"fresh_s": 0.25, "lasts": True}, 1e6)]
)
def test_message_counts_while_fresh_even_on_a_suspended_machine(monkeypatch, row, counts_for_s):
    now_s = [100.0]
    monkeypatch.setattr(topic_subscriptions, "elapsed_s", lambda: now_s[0])
    node = Node()
    topics = TopicSubscriptions(node, [Topic("number", Int32, of=int, from_ros=number, **row)], None)
    assert topics.value("number") is None
    node.take["number"](Int32(data=7))
    now_s[0] += counts_for_s
    assert topics.value("number") == 7
    now_s[0] += 8 * 3600.0
    assert topics.value("number") == (7 if row.get("lasts") else None)
