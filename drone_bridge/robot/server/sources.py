# SPDX-License-Identifier: Apache-2.0
"""Subscriptions to sensors and to robot_bridge's lists. For the executor."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from rclpy.qos import QoSProfile, ReliabilityPolicy

from drone_bridge.msg import SensorArray, SubsystemArray
from drone_bridge.robot.codec import SensorReading
from drone_bridge.robot.device.vehicle import DrivenSubsystem
from drone_bridge.robot.server.listing import (
    MAX_SENSORS,
    Listing,
    SensorSource,
    is_robot_connected,
    sources_of_message,
    subsystems_of_message,
)
from drone_bridge.robot.server.values import SensorValues
from drone_bridge.robot.topics.translation import Measurement
from drone_bridge.ros.lease import LeaseWatch, with_vehicle_lease
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topics import latched

SENSORS_TOPIC: Final = "sensors"
SUBSYSTEMS_TOPIC: Final = "subsystems"
QUEUE_DEPTH: Final = 10
BRIDGE_WATCH_PERIOD_S: Final = 0.5


class SensorSubscriptions:
    """Subscribes to the topics of the sensors in a list."""

    def __init__(
        self, node: LinkNode, measurements: Mapping[int, Measurement], values: SensorValues, wake: Callable[[], None]
    ) -> None:
        """`measurements` by type of sensor; `wake` wakes the link's thread to send `values`."""
        self._node, self._measurements, self._values, self._wake = node, measurements, values, wake
        self._subscriptions: list[Any] = []

    def follow(self, sources: tuple[SensorSource, ...], *, is_reliable: bool) -> None:
        """Subscribe to these sensors, and no others.

        Best effort matches every publisher, including those of most sensor drivers.
        """
        self.close()
        reliability = ReliabilityPolicy.RELIABLE if is_reliable else ReliabilityPolicy.BEST_EFFORT
        qos = QoSProfile(depth=QUEUE_DEPTH, reliability=reliability)
        for number, source in enumerate(sources[:MAX_SENSORS]):
            if source.topic:
                measurement = self._measurements[source.sensor.type]
                receive = self._receiver(number, source.topic, measurement.value)
                self._subscriptions.append(
                    self._node.create_subscription(measurement.message_type, source.topic, receive, qos)
                )

    def close(self) -> None:
        """Unsubscribe, and forget all values."""
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        self._values.clear()

    def _receiver(self, number: int, topic: str, read: Callable[[Any], int | None]) -> Callable[[Any], None]:
        def receive(message: Any) -> None:
            value = read(message)
            if value is None:
                self._node.statistics.counts["unknown values"] += 1
            self._values.put(number, value)
            self._wake()

        return receive


class ListedSources:
    """robot_bridge's lists, and whether its robot is connected. Written in the executor, read on the link's thread."""

    def __init__(self, node: LinkNode, subscriptions: SensorSubscriptions, wake: Callable[[], None]) -> None:
        self._node, self._subscriptions, self._wake = node, subscriptions, wake
        self._lock = threading.Lock()
        self._sources: tuple[SensorSource, ...] | None = None
        self._subsystems: tuple[DrivenSubsystem, ...] | None = None
        self._is_connected = False
        node.make_subscription(SensorArray, SENSORS_TOPIC, self._on_sensors, latched())
        node.make_subscription(SubsystemArray, SUBSYSTEMS_TOPIC, self._on_subsystems, latched())
        self._lease = LeaseWatch(node, SubsystemArray, SUBSYSTEMS_TOPIC, wake)
        self._robot_lease = LeaseWatch(node, SensorArray, SENSORS_TOPIC, wake, with_vehicle_lease)
        node.make_timer(BRIDGE_WATCH_PERIOD_S, self._watch_bridge)

    def newest(self) -> Listing | None:
        """Return the robot's lists, None while it is not connected. For the link's thread."""
        with self._lock:
            if not self._is_connected or self._lease.is_expired or self._subsystems is None or self._sources is None:
                return None
            return Listing(self._subsystems, self._sources)

    @property
    def is_silent(self) -> bool:
        """Whether the robot is connected to the bridge, but has been silent for a second. For any thread."""
        return self._is_connected and self._robot_lease.is_expired

    def _on_sensors(self, message: SensorArray) -> None:
        sources = sources_of_message(message)
        if sources != self._sources:
            self._subscriptions.follow(sources, is_reliable=True)
            with self._lock:
                self._sources = sources
        self._wake()

    def _on_subsystems(self, message: SubsystemArray) -> None:
        with self._lock:
            self._subsystems, self._is_connected = subsystems_of_message(message), is_robot_connected(message)
        self._wake()

    def _watch_bridge(self) -> None:
        """Notice that a bridge without a lease is gone."""
        if self._is_connected and not self._node.count_publishers(self._node.resolve_topic_name(SUBSYSTEMS_TOPIC)):
            with self._lock:
                self._is_connected = False
            self._wake()


def readings_of(listing: Listing, readings: list[SensorReading]) -> list[SensorReading]:
    """Return the readings of sensors that are still in the list."""
    return [reading for reading in readings if reading.sensor < len(listing.sources)]
