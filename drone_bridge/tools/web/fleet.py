# SPDX-License-Identifier: Apache-2.0
"""The vehicles of the graph that follow velocities, and the publishers that move them."""

from collections.abc import Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile

from drone_bridge.tools.web.helm import COMMAND_LIFESPAN_S, Motion
from drone_bridge.tools.web.vehicles import (
    AXES,
    COMMAND_TOPIC,
    COMMAND_TYPE,
    HELM_TOPIC,
    HOLD_SERVICE,
    HOLD_TYPE,
    Vehicle,
)

MAX_VEHICLES = 64


class Fleet:
    """Finds vehicles and publishes their commands, the latter from any thread."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publishers: dict[str, Any] = {}
        self.vehicles: list[Vehicle] = []

    def look(self) -> bool:
        """Update the vehicles from the graph; return whether they have changed."""
        found: dict[str, Vehicle] = {}
        topics = dict(self._node.get_topic_names_and_types())
        services = dict(self._node.get_service_names_and_types())
        for topic, type_names in topics.items():
            if topic.rpartition("/")[2] == COMMAND_TOPIC and COMMAND_TYPE in type_names and len(found) < MAX_VEHICLES:
                vehicle = self._vehicle_at(topic, topics, services)
                found |= {topic: vehicle} if vehicle else {}
        if list(found.values()) == self.vehicles:
            return False
        targets_now = {target for vehicle in found.values() for target in vehicle.targets}
        for topic in targets_now - self._publishers.keys():
            qos = QoSProfile(depth=1, lifespan=Duration(seconds=COMMAND_LIFESPAN_S))
            self._publishers[topic] = self._node.create_publisher(TwistStamped, topic, qos)
        for topic in self._publishers.keys() - targets_now:
            self._node.destroy_publisher(self._publishers.pop(topic))
        self.vehicles = list(found.values())
        return True

    def _vehicle_at(
        self, topic: str, topics: Mapping[str, Sequence[str]], services: Mapping[str, Sequence[str]]
    ) -> Vehicle | None:
        """Return what is steered by a topic, if anybody listens."""
        full_names = {
            f"{taker.node_namespace.rstrip('/')}/{taker.node_name}": taker.node_name
            for taker in self._node.get_subscriptions_info_by_topic(topic)
            if taker.topic_type == COMMAND_TYPE
        }
        nodes = sorted(full_names.values())
        if not nodes:
            return None
        # A recorder listens, too.
        bridges = [node for node in nodes if node.endswith("_bridge") and node != self._node.get_name()]
        helms = [f"{full}/{HELM_TOPIC}" for full in sorted(full_names)]
        helms = [name for name in helms if COMMAND_TYPE in topics.get(name, ())]
        holds = [f"{full}/{HOLD_SERVICE}" for full in sorted(full_names)]
        holds = [name for name in holds if HOLD_TYPE in services.get(name, ())]
        # In this order: who takes both of them knows the second one for a copy.
        return Vehicle(topic, (bridges or nodes)[0], (*helms, topic), tuple(holds))

    def command(self, topic: str, motion: Motion, stamp: Time, max_speed: float, max_turn_rate: float) -> None:
        """Publish a command that was given at `stamp`, in m/s and rad/s; `motion` is from -1 to 1 along AXES."""
        vehicle = next((each for each in self.vehicles if each.topic == topic), None)
        if vehicle is None:
            return
        x, y, z, yaw = (value if axis in vehicle.axes else 0.0 for axis, value in zip(AXES, motion, strict=True))
        message = TwistStamped()
        message.header.stamp = stamp
        message.twist.linear.x, message.twist.linear.y, message.twist.linear.z = (
            max_speed * x,
            max_speed * y,
            max_speed * z,
        )
        message.twist.angular.z = max_turn_rate * yaw
        for target in vehicle.targets:
            if publisher := self._publishers.get(target):
                publisher.publish(message)
