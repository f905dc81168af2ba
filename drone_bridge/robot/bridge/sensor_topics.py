# SPDX-License-Identifier: Apache-2.0
"""SensorTopics: a topic for each sensor that the connected robot lists."""

from dataclasses import replace
from typing import Any

from rclpy.publisher import Publisher

from drone_bridge.robot import codec
from drone_bridge.robot.topics import MAX_SENSORS, TABLE, TOPIC_OF_TYPE, RobotTranslation
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.publishers import NO_EVENTS
from drone_bridge.wire.counters import ProblemCounter

UNKNOWN_SENSORS = ProblemCounter("unknown_sensors")

#: Maximum number of topics. They stay for sensors that come back: DDS never frees all memory of a destroyed topic.
MAX_TOPICS = 128


class SensorTopics:
    """Publishers by topic, kept until the node is cleaned up. For the loop's thread."""

    def __init__(self, node: ProtocolNode, translation: RobotTranslation) -> None:
        self._node, self._translation = node, translation
        self._publishers: dict[str, Publisher[Any]] = {}
        self._info = codec.SensorInfo(())  # the newest list
        self._topics: list[str] = []  # by sensor; empty: no topic
        self._unpublished: dict[int, Any] = {}  # by sensor: messages that were not published yet

    def update(self, info: codec.SensorInfo) -> None:
        """Create topics for a new list, and publish its values."""
        self._info = info
        self._translation.withheld = ()
        wanted = [topic for topic in self._translation.sensor_topics(info) if topic]
        withheld = self._translation.withheld = {topic for topic in wanted if not self._ensure_topic(topic)}
        left_out = sum(sensor.type in TOPIC_OF_TYPE for sensor in info.sensors) - len(wanted)
        for number, reason in (
            (left_out, f"the limit is {MAX_SENSORS}"),
            (len(withheld), f"the robot has renamed sensors, and the limit is {MAX_TOPICS} topics per run"),
        ):
            if number:
                self._node.report.count_and_warn(
                    "sensors_without_topic", f"{number} sensors without a topic: {reason}."
                )
        self._topics = self._translation.sensor_topics(info)
        messages = {number: self._message(number, sensor) for number, sensor in enumerate(info.sensors)}
        self._unpublished = {number: message for number, message in messages.items() if message is not None}
        for number, message in self._unpublished.items():
            if _is_battery(info.sensors[number]):  # for late subscribers: not every robot sends updates
                self._node.publish(self._publishers[self._topics[number]], message)
        self.publish_pending()

    def _ensure_topic(self, topic: str) -> bool:
        """Create a topic's publisher if needed. Return False if the limit is reached."""
        if topic not in self._publishers and len(self._publishers) < MAX_TOPICS:
            row = TABLE.row(topic)
            # Without QoS override parameters, which would accumulate with a hostile robot's names.
            made = self._node.create_publisher(row.message, topic, row.qos(), event_callbacks=NO_EVENTS)
            self._node.cleanup.callback(self._node.destroy_publisher, made)
            self._publishers[topic] = made
        return topic in self._publishers

    def publish_pending(self) -> None:
        """Publish each value of the list once its topic has a subscriber.

        A new topic has no subscriber yet, and not every robot sends updates later.
        """
        for number in tuple(self._unpublished):
            publisher = self._publishers[self._topics[number]]
            if self._node.is_wanted(publisher):
                self._node.publish(publisher, self._unpublished.pop(number))

    def read(self, update: codec.SensorUpdate) -> None:
        """Publish the newest reading of each sensor."""
        sensors = self._info.sensors
        if not update.has_ids and len(update.readings) != len(sensors):
            self._node.report.count_and_warn(
                UNKNOWN_SENSORS,
                f"The robot sent {len(update.readings)} readings without ids, but lists {len(sensors)} sensors.",
            )
            return
        newest = {reading.sensor: reading.value for reading in update.readings}
        known = {number: value for number, value in newest.items() if number < len(sensors)}
        if len(known) < len(newest):
            self._node.report.count_and_warn(UNKNOWN_SENSORS, "The robot sent readings of unlisted sensors.")
        for number, value in known.items():
            self._publish(number, replace(sensors[number], value=value))

    def _publish(self, number: int, sensor: codec.Sensor) -> None:
        self._unpublished.pop(number, None)
        if topic := self._topics[number]:
            publisher = self._publishers[topic]
            if _is_battery(sensor) or self._node.is_wanted(publisher):
                self._node.publish(publisher, self._message(number, sensor))

    def _message(self, number: int, sensor: codec.Sensor) -> Any:
        """Return a sensor's message. None without a topic or value."""
        topic = self._topics[number]
        to_ros = TABLE.row(topic).to_ros if topic else None
        return to_ros(self._translation, sensor, self._node.now()) if to_ros else None


def _is_battery(sensor: codec.Sensor) -> bool:
    """Return whether a sensor's topic is latched."""
    return sensor.type == codec.SensorType.BATTERY
