# SPDX-License-Identifier: Apache-2.0
"""The robot's readings as topics, and how many there may be."""

from contextlib import ExitStack

from builtin_interfaces.msg import Time

from drone_bridge.robot import codec
from drone_bridge.robot.bridge.sensor_topics import MAX_TOPICS, SensorTopics
from drone_bridge.robot.topics import Translation


class TopicNode:
    """A node that remembers which publishers there are."""

    def __init__(self):
        self.topics, self.warnings = [], []
        self.cleanup = ExitStack()

    def create_publisher(self, message_type, topic, depth, event_callbacks):
        del message_type, depth, event_callbacks
        assert topic not in self.topics
        self.topics.append(topic)
        return topic

    def destroy_publisher(self, topic):
        self.topics.remove(topic)

    def count_and_warn(self, count, sentence):
        self.warnings.append((count, sentence))

    def is_wanted(self, publisher):
        assert publisher in self.topics, "a destroyed publisher is used"
        return False

    def now(self):
        return Time()


def thermometers(*names):
    return codec.SensorInfo(tuple(codec.Sensor(2, name, value=5) for name in names))


def test_readings_before_the_list_are_no_reason_to_warn():
    node = TopicNode()
    topics = SensorTopics(node, Translation())
    readings = codec.SensorUpdate((codec.SensorReading(0, 5),))
    topics.read(readings)
    assert not node.warnings
    topics.update(codec.SensorInfo(()))
    topics.read(readings)
    assert [count for count, _ in node.warnings] == ["unknown_sensors"]


def test_renaming_sensors_makes_no_topics_without_limit_and_those_that_come_back_have_theirs():
    """What DDS keeps of each is never given back."""
    node = TopicNode()
    topics = SensorTopics(node, Translation())
    for number in range(200):
        topics.update(thermometers("same", *(f"sensor {number} {i}" for i in range(10))))
        topics.read(codec.SensorUpdate(tuple(codec.SensorReading(i, 7) for i in range(11))))
    assert len(node.topics) == MAX_TOPICS
    assert "renames them too often" in node.warnings[0][1]
    node.warnings.clear()
    topics.update(thermometers("sensor 0 3", "same"))
    assert not node.warnings
    node.cleanup.close()
    assert node.topics == []
