# SPDX-License-Identifier: Apache-2.0
"""TopicFaults: other nodes' endpoints that do not fit the topics of a node: another type, or an incompatible QoS."""

from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSCompatibility, qos_check_compatible

from drone_bridge.ros.commands.cmd_vel_type import UNKNOWN_NODE
from drone_bridge.ros.publishers import PUBLISHER_ERRORS

#: Topics of every node, and topics of many vehicles.
_OF_NODES = ("/rosout", "/parameter_events", "/diagnostics", "/clock", "/tf", "/tf_static")


class TopicFaults:
    """Watch of a node's topics. A topic is examined while it has a fault, and when its endpoints change in number."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._counts: dict[tuple[str, bool], int] = {}
        self._faults: dict[tuple[str, bool], dict[str, object] | None] = {}

    def facts(self) -> dict[str, object] | None:
        """Return the facts of Obstacle.INCOMPATIBLE, or None. Commands have an obstacle of their own."""
        try:
            taken = [(each.topic_name, True) for each in self._node.subscriptions]
            topics = dict.fromkeys([*taken, *((each.topic_name, False) for each in self._node.publishers)])
            for topic, is_taken in topics:
                self._examine(topic, is_taken=is_taken)
        except PUBLISHER_ERRORS:  # of one that has just been destroyed
            return None
        return next((fault for key in topics if (fault := self._faults.get(key))), None)

    def _examine(self, topic: str, *, is_taken: bool) -> None:
        node, key = self._node, (topic, is_taken)
        is_command = is_taken and topic.rpartition("/")[2].startswith("cmd_")
        if is_command or topic in _OF_NODES or topic.startswith(f"{node.get_fully_qualified_name()}/"):
            return
        count = (node.count_publishers if is_taken else node.count_subscribers)(topic)
        if count == self._counts.get(key) and not self._faults[key]:
            return
        ends = node.get_publishers_info_by_topic(topic), node.get_subscriptions_info_by_topic(topic)
        others, ours = ends if is_taken else ends[::-1]
        name = node.get_name(), node.get_namespace()
        own = [each for each in ours if (each.node_name, each.node_namespace) == name]
        is_known = own and all(each.node_name != UNKNOWN_NODE for each in others)
        self._counts[key], self._faults[key] = count if is_known else -1, None
        for each in others if own else ():
            is_hidden = each.node_name.startswith("_") or (each.node_name, each.node_namespace) == name
            if not is_hidden and (problem := problem_of(each, own, is_taken=is_taken)):
                other = f"{each.node_namespace.rstrip('/')}/{each.node_name}"
                self._faults[key] = {"topic": topic, "node": other, "problem": problem}


def problem_of(other: Any, own: Sequence[Any], *, is_taken: bool) -> str:
    """Return why messages of a topic do not pass between another endpoint and a node's own ones, or "" if they do.

    A node may have several subscriptions, which request different QoS. `is_taken`: whether these are subscriptions.
    """
    if other.topic_type != own[0].topic_type:
        return f"its type is {other.topic_type} instead of {own[0].topic_type}"
    pairs = [(other, each) if is_taken else (each, other) for each in own]
    verdicts = [qos_check_compatible(offer.qos_profile, request.qos_profile) for offer, request in pairs]
    if all(verdict == QoSCompatibility.ERROR for verdict, _ in verdicts):
        return f"its QoS is incompatible ({verdicts[0][1].strip().rstrip(';')})"
    are_latched = any(each.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for each in own)
    if is_taken and are_latched and other.qos_profile.durability == DurabilityPolicy.VOLATILE:
        return "its durability is volatile instead of transient_local, so earlier messages are lost"
    return ""
