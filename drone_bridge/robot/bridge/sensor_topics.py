# SPDX-License-Identifier: Apache-2.0
"""SensorTopics: a topic for each sensor of a robot, which are known only once it is connected."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rclpy.publisher import Publisher

from drone_bridge.net.clock import elapsed_s
from drone_bridge.robot import codec
from drone_bridge.robot.topics import MAX_SENSORS, TABLE, TOPIC_OF_TYPE, Translation
from drone_bridge.ros.publishers import NO_EVENTS
from drone_bridge.ros.topics import Topic
from drone_bridge.ros.vehicle_node import VehicleNode

#: DDS never frees all of a destroyed topic, so there is a limit for the life of the node, on the number of names and on
#: how often they return.
MAX_NAMES_EVER = 128
MAX_RETURNS = 128  # at once
RETURNS_PER_S = 0.1  # in the long run


class TopicBudget:
    """Limits the topics created over all robots and connections of a node. For the loop's thread."""

    def __init__(self) -> None:
        self._known: set[tuple[str, type]] = set()
        self._returns = float(MAX_RETURNS)
        self._updated_s = elapsed_s()

    def grants(self, topic: str, message_type: type) -> bool:
        """Return whether a publisher may be created, and count it."""
        if (topic, message_type) not in self._known:
            if len(self._known) >= MAX_NAMES_EVER:
                return False
            self._known.add((topic, message_type))
            return True
        now_s = elapsed_s()
        self._returns = min(MAX_RETURNS, self._returns + (now_s - self._updated_s) * RETURNS_PER_S)
        self._updated_s = now_s
        if self._returns < 1:
            return False
        self._returns -= 1
        return True


class SensorTopics:
    """Publishers by topic, kept while the robot lists the sensor. For the loop's thread."""

    def __init__(self, node: VehicleNode, translation: Translation, budget: TopicBudget) -> None:
        self._node, self._translation, self._budget = node, translation, budget
        self._publishers: dict[str, tuple[type, Publisher[Any]]] = {}
        self._forget()

    def _forget(self) -> None:
        #: The newest list.
        self.info = codec.SensorInfo(())
        self._is_listed = False
        self._unheard: dict[int, Any] = {}  # messages by sensor that were not published yet
        self._topics: list[str] = []  # of each sensor in the list; empty for none

    def update(self, info: codec.SensorInfo) -> None:
        """Create and destroy topics for a new list, and offer its values."""
        self.info, self._is_listed = info, True
        self._translation.withheld = ()
        wanted = {topic: TABLE.row(topic) for topic in self._translation.sensor_topics(info) if topic}
        withheld = self._translation.withheld = self._make_topics(wanted)
        left_out = sum(sensor.type in TOPIC_OF_TYPE for sensor in info.sensors) - len(wanted)
        for number, reason in (
            (left_out, f"the limit is {MAX_SENSORS}"),
            (
                len(withheld),
                f"the robot renames them too often, and this node makes topics of {MAX_NAMES_EVER} names at most",
            ),
        ):
            if number:
                self._node.count_and_warn("sensors_without_a_topic", f"{number} sensors get no topic: {reason}.")
        self._topics = self._translation.sensor_topics(info)
        messages = {number: self._message(number, sensor) for number, sensor in enumerate(info.sensors)}
        self._unheard = {number: message for number, message in messages.items() if message is not None}
        for number, message in self._unheard.items():
            if _is_battery(info.sensors[number]):  # for late subscribers: not every robot sends readings
                self._node.publish(self._publishers[self._topics[number]][1], message)
        self.offer()

    def _make_topics(self, wanted: Mapping[str, Topic]) -> set[str]:
        """Create the topics that are wanted and destroy others; return those for which there is no room."""
        for topic in tuple(self._publishers):
            if topic not in wanted or wanted[topic].message is not self._publishers[topic][0]:
                self._destroy(topic)
        withheld = set()
        for topic, row in wanted.items():
            if topic in self._publishers:
                continue
            if not self._budget.grants(topic, row.message):
                withheld.add(topic)
                continue
            # Without QoS override parameters, which would pile up with a hostile robot's names.
            made: Publisher[Any] = self._node.create_publisher(row.message, topic, row.qos(), event_callbacks=NO_EVENTS)
            self._publishers[topic] = row.message, made
        return withheld

    def offer(self) -> None:
        """Publish each value of the list once, as soon as there is a subscriber.

        A topic that has just been made has no listeners yet, and not every robot sends readings later.
        """
        for number in tuple(self._unheard):
            publisher = self._publishers[self._topics[number]][1]
            if self._node.is_wanted(publisher):
                self._node.publish(publisher, self._unheard.pop(number))

    def read(self, update: codec.SensorUpdate) -> None:
        """Publish the newest reading of each sensor."""
        if not self._is_listed:
            return  # some robots send readings before the list
        sensors = self.info.sensors
        if not update.has_ids and len(update.readings) != len(sensors):
            self._node.count_and_warn(
                "unknown_sensors",
                f"The robot sent {len(update.readings)} readings without ids, and has {len(sensors)} sensors.",
            )
            return
        newest = {reading.sensor: reading.value for reading in update.readings}
        known = {number: value for number, value in newest.items() if number < len(sensors)}
        if len(known) < len(newest):
            self._node.count_and_warn("unknown_sensors", "The robot sent readings of sensors that it has not listed.")
        for number, value in known.items():
            self._publish(number, replace(sensors[number], value=value))

    def close(self) -> None:
        for topic in tuple(self._publishers):
            self._destroy(topic)
        self._forget()

    def _publish(self, number: int, sensor: codec.Sensor) -> None:
        self._unheard.pop(number, None)
        if topic := self._topics[number]:
            publisher = self._publishers[topic][1]
            if _is_battery(sensor) or self._node.is_wanted(publisher):
                self._node.publish(publisher, self._message(number, sensor))

    def _message(self, number: int, sensor: codec.Sensor) -> Any:
        """Return what a sensor says on its topic; None for nothing, and without a topic."""
        topic = self._topics[number]
        to_ros = TABLE.row(topic).to_ros if topic else None
        return to_ros(self._translation, sensor, self._node.now()) if to_ros else None

    def _destroy(self, topic: str) -> None:
        _, publisher = self._publishers.pop(topic)
        self._node.destroy_publisher(publisher)


def _is_battery(sensor: codec.Sensor) -> bool:
    """Return whether a sensor's topic is latched."""
    return sensor.type == codec.SensorType.BATTERY
