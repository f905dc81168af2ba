# SPDX-License-Identifier: Apache-2.0
"""SampledTopics: the link's thread takes the newest measurements at its own rate. Without DDS, with a fake clock."""

import pytest
from commanded_node import commanded_nodes
from std_msgs.msg import Int32

from drone_bridge.ros.servers import topic_subscriptions
from drone_bridge.ros.servers.sampled_topics import SampledTopics
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.topics.table import Topic

RATE = 10.0
SOURCE_TIMEOUT_S = 1.0
ROWS = [Topic(name, Int32, of=int, from_ros=lambda _, message: message.data) for name in ("height", "speed")]


class Sampled:
    """Sampled topics, their messages, and the turns of the link's thread."""

    def __init__(self, node):
        self.node, self.takes = node, 0
        self.topics = TopicSubscriptions(node, ROWS, None, sampled=[row.name for row in ROWS])
        self.sampled = SampledTopics(node, ROWS, self.topics, RATE, self._note)

    def _note(self):
        self.takes += 1

    def arrive(self, topic, number):
        self.node.listened[topic].append(Int32(data=number))

    def look(self, after_s=1 / RATE):
        self.node.now_s += after_s
        self.sampled.after_turn(self.node.now_s)


@pytest.fixture
def sampled(monkeypatch, tmp_path):
    node = commanded_nodes(monkeypatch, tmp_path)(source_timeout=SOURCE_TIMEOUT_S)
    monkeypatch.setattr(topic_subscriptions, "elapsed_s", lambda: node.now_s)
    sampled = Sampled(node)
    sampled.look()
    return sampled


def test_the_newest_message_of_each_topic_is_taken_once_per_period(sampled):
    for number in (1, 2, 3):
        sampled.arrive("height", number)
    sampled.arrive("speed", 7)
    sampled.look(0.4 / RATE)
    assert sampled.topics.value("height") is None
    sampled.look(0.6 / RATE)
    assert (sampled.topics.value("height"), sampled.topics.value("speed"), sampled.takes) == (3, 7, 1)


def test_nothing_is_told_where_nothing_has_come(sampled):
    sampled.look()
    assert sampled.takes == 0
    assert sampled.sampled.due_s > sampled.node.now_s


def test_a_message_is_as_old_as_the_take_before(sampled):
    sampled.arrive("height", 1)
    sampled.look(0.75)
    sampled.node.now_s += 0.25
    assert sampled.topics.value("height") == 1
    sampled.node.now_s += 0.01
    assert sampled.topics.value("height") is None


def test_what_waited_while_nothing_was_taken_is_stale(sampled):
    sampled.arrive("height", 1)
    sampled.look(2 * SOURCE_TIMEOUT_S)
    assert sampled.topics.value("height") is None
    sampled.arrive("height", 2)
    sampled.look()
    assert sampled.topics.value("height") == 2
