# SPDX-License-Identifier: Apache-2.0
"""A topic for each sensor of a robot, which are known only once it is connected."""

import time
from collections.abc import Mapping
from typing import Any, Final

from rclpy.publisher import Publisher

from drone_bridge.robot.codec import Sensor, SensorInfo, SensorUpdate
from drone_bridge.robot.topics.translation import BATTERY_TOPIC, Measurement, sensor_topics
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topics import NO_EVENTS, latched

MAX_TOPICS: Final = 64  # of one robot
#: DDS never frees all of a destroyed topic, so there is a limit for the life of the node, on the number of names and on
#: how often they return.
MAX_NAMES_EVER: Final = 128
MAX_RETURNS: Final = 128  # at once
RETURNS_PER_S: Final = 0.1  # in the long run
QUEUE_DEPTH: Final = 10


class TopicBudget:
    """Limits the topics created over all robots and connections of a node. For the link's thread."""

    def __init__(self) -> None:
        self._known: set[tuple[str, type]] = set()
        self._returns = float(MAX_RETURNS)
        self._updated_s = time.monotonic()

    def grants(self, topic: str, message_type: type) -> bool:
        """Return whether a publisher may be created, and count it."""
        if (topic, message_type) not in self._known:
            if len(self._known) >= MAX_NAMES_EVER:
                return False
            self._known.add((topic, message_type))
            return True
        now_s = time.monotonic()
        self._returns = min(MAX_RETURNS, self._returns + (now_s - self._updated_s) * RETURNS_PER_S)
        self._updated_s = now_s
        if self._returns < 1:
            return False
        self._returns -= 1
        return True


class SensorTopics:
    """Publishers by topic, kept while the robot lists the sensor. For the link's thread."""

    def __init__(
        self, node: LinkNode, frame_id: str, budget: TopicBudget, measurements: Mapping[int, Measurement]
    ) -> None:
        """`measurements` by type of sensor."""
        self._node = node
        self._measurements = measurements
        self._budget = budget
        self._frame_id = frame_id
        self._info = SensorInfo(())
        self._is_listed = False
        self._publishers: dict[str, tuple[type, Publisher[Any]]] = {}
        self._unheard: dict[int, Any] = {}  # messages by sensor that were not published yet
        #: The topic of each sensor in the list; empty for none.
        self.topics: list[str] = []

    @property
    def info(self) -> SensorInfo:
        return self._info

    def update(self, info: SensorInfo) -> None:
        """Create and destroy topics for a new list, and offer its values."""
        self._info = info
        self._is_listed = True
        self.topics = sensor_topics(info.sensors, MAX_TOPICS)
        wanted = {
            topic: self._measurements[sensor.type].message_type
            for topic, sensor in zip(self.topics, info.sensors, strict=True)
            if topic
        }
        for topic in tuple(self._publishers):
            if wanted.get(topic) is not self._publishers[topic][0]:
                self._destroy(topic)
        withheld = set()
        for topic, message_type in wanted.items():
            if topic in self._publishers:
                continue
            if not self._budget.grants(topic, message_type):
                withheld.add(topic)
            else:
                # Without QoS override parameters, which would pile up with a hostile robot's names.
                qos = latched() if _is_battery(topic) else QUEUE_DEPTH
                made: Publisher[Any] = self._node.create_publisher(message_type, topic, qos, event_callbacks=NO_EVENTS)
                self._publishers[topic] = message_type, made
        left_out = sum(sensor.type in self._measurements for sensor in info.sensors) - len(wanted)
        if left_out:
            self._node.count_and_warn(
                "sensors without a topic", f"{left_out} sensors get no topic: the limit is {MAX_TOPICS}."
            )
        if withheld:
            self.topics = ["" if topic in withheld else topic for topic in self.topics]
            self._node.count_and_warn(
                "sensors without a topic",
                f"{len(withheld)} sensors get no topic: the robot renames them too often, and this node makes topics "
                f"of {MAX_NAMES_EVER} names at most.",
            )
        self._unheard = {
            number: self._message(sensor, sensor.value)
            for number, sensor in enumerate(info.sensors)
            if self.topics[number] and (sensor.value is not None or _is_battery(self.topics[number]))
        }
        for number, message in self._unheard.items():
            if _is_battery(self.topics[number]):  # for who comes later: not every robot sends readings
                self._node.publish(self._publishers[self.topics[number]][1], message)
        self.offer()

    def offer(self) -> None:
        """Publish each value of the list once, as soon as there is a subscriber.

        A topic that has just been made has no listeners yet, and not every robot sends readings later.
        """
        for number in tuple(self._unheard):
            publisher = self._publishers[self.topics[number]][1]
            if self._node.is_wanted(publisher):
                self._node.publish(publisher, self._unheard.pop(number))

    def read(self, update: SensorUpdate) -> None:
        """Publish the newest reading of each sensor."""
        if not self._is_listed:
            return  # some robots send readings before the list
        sensors = self._info.sensors
        if not update.has_ids and len(update.readings) != len(sensors):
            self._node.count_and_warn(
                "unknown sensors",
                f"The robot sent {len(update.readings)} readings without ids, and has {len(sensors)} sensors.",
            )
            return
        newest = {reading.sensor: reading.value for reading in update.readings}
        known = {number: value for number, value in newest.items() if number < len(sensors)}
        if len(known) < len(newest):
            self._node.count_and_warn("unknown sensors", "The robot sent readings of sensors that it has not listed.")
        for number, value in known.items():
            self._publish(number, sensors[number], value)

    def close(self) -> None:
        for topic in tuple(self._publishers):
            self._destroy(topic)
        self._info = SensorInfo(())
        self._is_listed = False
        self._unheard.clear()
        self.topics = []

    def _publish(self, number: int, sensor: Sensor, value: int) -> None:
        self._unheard.pop(number, None)
        topic = self.topics[number]
        if topic and (_is_battery(topic) or self._node.is_wanted(self._publishers[topic][1])):
            publisher = self._publishers[topic][1]
            self._node.publish(publisher, self._message(sensor, value))

    def _message(self, sensor: Sensor, value: int | None) -> Any:
        return self._measurements[sensor.type].message(sensor, value, self._node.now(), self._frame_id)

    def _destroy(self, topic: str) -> None:
        _, publisher = self._publishers.pop(topic)
        self._node.destroy_publisher(publisher)


def _is_battery(topic: str) -> bool:
    """Return whether a topic is a battery's, which is latched."""
    return topic.partition("/")[0] == BATTERY_TOPIC
