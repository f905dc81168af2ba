# SPDX-License-Identifier: Apache-2.0
"""SensorSubscriptions: topics of a robot's sensors. ListedParts: robot_bridge's lists. For the executor."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from drone_bridge.msg import SensorArray, SubsystemArray
from drone_bridge.robot.topics import MAX_SENSORS, TABLE, TOPIC_OF_TYPE, RobotTranslation, SensorSource
from drone_bridge.robot.vehicle.server.listing import drivable_subsystems, is_robot_connected
from drone_bridge.robot.vehicle.session.listing import Listing
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.servers.bridge_watch import BridgeWatch, publishing_nodes
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.topics.table import Topic


class SensorSubscriptions:
    """Subscriptions to the topics of listed sensors, with their newest values until `take`."""

    def __init__(self, node: ProtocolNode, translation: RobotTranslation, wake: Callable[[], None]) -> None:
        """`wake` is called after each value. Its owner should call `take`."""
        self._node, self._translation, self._wake = node, translation, wake
        self._subscriptions: list[Any] = []
        self._values: dict[int, int | None] = {}

    def follow(self, sources: tuple[SensorSource, ...], *, are_of_bridge: bool) -> None:
        """Subscribe to these sensors only, with robot_bridge's QoS or one that matches any publisher.

        Publishers other than a bridge may offer less.
        """
        self.close()
        for number, source in enumerate(sources[:MAX_SENSORS]):
            if source.topic:
                row = TABLE.row(f"{TOPIC_OF_TYPE[source.sensor.type]}/{number}")
                receive, qos = self._receiver(number, row), row.qos() if are_of_bridge else row.requested()
                subscribe(self._node, row.message, source.topic, receive, qos, keep=self._subscriptions.append)

    def take(self) -> dict[int, int | None]:
        """Return the values received since the last call, by sensor. None: no longer known.

        For one other thread.
        """
        taken: dict[int, int | None] = {}
        with contextlib.suppress(KeyError):  # empty, perhaps just cleared by `close` in the executor
            while True:
                number, value = self._values.popitem()
                taken[number] = value
        return taken

    def close(self) -> None:
        """Unsubscribe, and clear all values."""
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        self._values.clear()

    def _receiver(self, number: int, row: Topic) -> Callable[[Any], None]:
        assert row.from_ros
        read = row.from_ros

        def receive(message: Any) -> None:
            self._values[number] = read(self._translation, message)
            self._wake()

        return receive


class ListedParts:
    """Lists of robot_bridge, and whether its robot is connected."""

    def __init__(
        self,
        node: ProtocolNode,
        translation: RobotTranslation,
        subscriptions: SensorSubscriptions,
        on_change: Callable[[], None],
    ) -> None:
        """`on_change` is called when `newest` or `is_silent` may have changed."""
        self._translation, self._subscriptions = translation, subscriptions
        self._on_change = on_change
        self._sources: tuple[SensorSource, ...] | None = None
        self._subsystems: SubsystemArray | None = None
        sensors, subsystems = map(TABLE.row, ("sensors", "subsystems"))
        node.make_subscription(sensors.message, sensors.name, self._on_sensors, sensors.requested())
        node.make_subscription(subsystems.message, subsystems.name, self._on_subsystems, subsystems.requested())
        self._bridge = BridgeWatch(node, partial(publishing_nodes, node, subsystems.name), on_change)

    def newest(self) -> Listing | None:
        """Return the robot's parts. None while it is not connected."""
        if not self._is_connected or self._bridge.is_gone or self._sources is None:
            return None
        assert self._subsystems
        subsystems = drivable_subsystems(self._translation.wire_subsystems(self._subsystems))
        return Listing(subsystems, tuple(source.sensor for source in self._sources))

    @property
    def _is_connected(self) -> bool:
        return self._subsystems is not None and is_robot_connected(self._subsystems)

    @property
    def is_silent(self) -> bool:
        """Whether the robot is connected to the bridge, but has been silent for a second."""
        return self._is_connected and self._bridge.is_vehicle_silent

    def _on_sensors(self, message: SensorArray) -> None:
        sources = self._translation.wire_sensors(message)
        if sources != self._sources:
            self._subscriptions.follow(sources, are_of_bridge=True)
            self._sources = sources
        self._on_change()

    def _on_subsystems(self, message: SubsystemArray) -> None:
        self._subsystems = message
        self._on_change()
