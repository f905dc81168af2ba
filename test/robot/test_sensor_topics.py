# SPDX-License-Identifier: Apache-2.0
"""SensorTopics: the robot's readings on topics, and their maximum number."""

import math
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.robot import codec
from drone_bridge.robot.bridge.sensor_topics import MAX_TOPICS, SensorTopics
from drone_bridge.robot.topics import RobotTranslation


class TopicNode:
    """Node that records its publishers."""

    def __init__(self):
        self.topics, self.warnings, self.published, self.is_heard = [], [], [], False
        self.cleanup = ExitStack()
        self.report = SimpleNamespace(count_and_warn=self._count_and_warn)

    def create_publisher(self, message_type, topic, depth, event_callbacks):
        del message_type, depth, event_callbacks
        assert topic not in self.topics
        self.topics.append(topic)
        return topic

    def destroy_publisher(self, topic):
        self.topics.remove(topic)

    def _count_and_warn(self, count, sentence):
        self.warnings.append((count, sentence))

    def is_wanted(self, publisher):
        assert publisher in self.topics, "a destroyed publisher is used"
        return self.is_heard

    def publish(self, publisher, message):
        self.published.append((publisher, message))

    def now(self):
        return Time()


def thermometers(*names):
    return codec.SensorInfo(tuple(codec.Sensor(2, name, value=5) for name in names))


@pytest.fixture
def node():
    return TopicNode()


@pytest.fixture
def topics(node):
    return SensorTopics(node, RobotTranslation())


def test_batteries_are_published_at_once_since_robotd_sends_no_readings(node, topics):
    batteries = (codec.Sensor(1, name, full_voltage_mv=24_000) for name in ("M1", "M2"))
    topics.update(codec.SensorInfo(tuple(batteries), codec.SensorLayout.ROBOTD_1_2))
    assert [topic for topic, _ in node.published] == ["battery_state", "battery_state/m2"]
    message = node.published[1][1]
    assert (message.present, message.location, math.isnan(message.voltage)) == (True, "M2", True)


def test_a_value_is_published_if_its_topic_has_a_subscriber(node, topics):
    topics.update(thermometers("a"))
    assert not node.published
    node.is_heard = True
    topics.update(thermometers("a"))
    assert [(topic, message.temperature) for topic, message in node.published] == [("temperature/a", 0.05)]


def test_readings_without_ids_are_in_the_order_of_the_list(node, topics):
    node.is_heard = True
    topics.update(thermometers("a", "b"))
    node.published.clear()
    topics.read(codec.SensorUpdate((codec.SensorReading(0, 100), codec.SensorReading(1, 200)), has_ids=False))
    assert [(topic, message.temperature) for topic, message in node.published] == [
        ("temperature/a", 1.0),
        ("temperature/b", 2.0),
    ]
    topics.read(codec.SensorUpdate((codec.SensorReading(0, 100),), has_ids=False))
    assert [count for count, _ in node.warnings] == ["unknown_sensors"]


def test_renamed_sensors_get_limited_topics(node, topics):
    """DDS never frees all memory of a topic."""
    for number in range(200):
        topics.update(thermometers("same", *(f"sensor {number} {i}" for i in range(10))))
        topics.read(codec.SensorUpdate(tuple(codec.SensorReading(i, 7) for i in range(11))))
    assert len(node.topics) == MAX_TOPICS
    node.cleanup.close()
    assert node.topics == []
