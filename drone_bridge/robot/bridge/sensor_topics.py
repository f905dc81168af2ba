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

    def update(self, info: codec.SensorInfo) -> None:
        """Create topics for a new list, and publish its values."""
        self._info, self._topics = info, self._translation.sensor_topics(info)
        wanted = [topic for topic in self._topics if topic]
        if left_out := sum(sensor.type in TOPIC_OF_TYPE for sensor in info.sensors) - len(wanted):
            self._node.report.count_and_warn(
                "sensors_without_topic", f"{left_out} sensors without a topic: the limit is {MAX_SENSORS}."
            )
        for topic in wanted:
            if topic not in self._publishers and len(self._publishers) < MAX_TOPICS:
                row = TABLE.row(topic)
                # Without QoS override parameters, which would accumulate with a hostile robot's names.
                made = self._node.create_publisher(row.message, topic, row.qos(), event_callbacks=NO_EVENTS)
                self._node.cleanup.callback(self._node.destroy_publisher, made)
                self._publishers[topic] = made
        for number, sensor in enumerate(info.sensors):
            self._publish(number, sensor)

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
        """Publish a value: a battery's always, since its topic is latched and not every robot sends readings."""
        topic = self._topics[number]
        if not (publisher := self._publishers.get(topic)):
            return
        to_ros = TABLE.row(topic).to_ros
        if to_ros and (sensor.type == codec.SensorType.BATTERY or self._node.is_wanted(publisher)):
            message = to_ros(self._translation, sensor, self._node.now())
            if message is not None:
                self._node.publish(publisher, message)
