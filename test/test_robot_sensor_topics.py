# SPDX-License-Identifier: Apache-2.0
"""The robot's readings as topics, and how many there may be."""

from builtin_interfaces.msg import Time

from drone_bridge.robot import codec
from drone_bridge.robot.bridge.sensor_topics import MAX_NAMES_EVER, MAX_RETURNS, SensorTopics, TopicBudget
from drone_bridge.robot.topics import Translation


class TopicNode:
    """A node that remembers which publishers there are."""

    def __init__(self):
        self.topics, self.made, self.warnings = [], 0, []

    def create_publisher(self, message_type, topic, depth, event_callbacks):
        del message_type, depth, event_callbacks
        self.topics.append(topic)
        self.made += 1
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
    topics = SensorTopics(node, Translation(), TopicBudget())
    readings = codec.SensorUpdate((codec.SensorReading(0, 5),))
    topics.read(readings)
    assert not node.warnings
    topics.update(codec.SensorInfo(()))
    topics.read(readings)
    assert [count for count, _ in node.warnings] == ["unknown_sensors"]


def test_renaming_sensors_does_not_make_topics_without_limit():
    """What DDS keeps of each is never given back."""
    node = TopicNode()
    budget = TopicBudget()
    for connection in range(2):
        topics = SensorTopics(node, Translation(), budget)
        for number in range(200):
            topics.update(thermometers("same", *(f"sensor {connection} {number} {i}" for i in range(10))))
            topics.read(codec.SensorUpdate(tuple(codec.SensorReading(i, 7) for i in range(11))))
            assert "temperature/same" in node.topics  # what stays, stays
            assert len(node.topics) <= 11  # what goes, goes
        topics.close()
        assert node.topics == []
    assert node.made <= MAX_NAMES_EVER + 1  # one came back on the second connection
    assert "renames them too often" in node.warnings[0][1]


def test_renaming_sensors_back_and_forth_is_limited_too():
    node = TopicNode()
    topics = SensorTopics(node, Translation(), TopicBudget())
    for number in range(1000):
        topics.update(thermometers("a", "b") if number % 2 else thermometers("c", "d"))
    assert node.made <= 4 + MAX_RETURNS + 1
