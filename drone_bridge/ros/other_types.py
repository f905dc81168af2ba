# SPDX-License-Identifier: Apache-2.0
"""OtherTypes: warns of publishers and subscriptions whose type on a topic is not ours."""

from collections.abc import Collection
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node

from drone_bridge.ros.common_parameters import STAMPED_CMD_VEL


class OtherTypes:
    """Warns once of each endpoint on a topic that has another type than ours, as DDS never connects the two."""

    def __init__(self, node: Node, topic: str, message_type: type) -> None:
        """`message_type` is what this node takes, or publishes, on the topic."""
        self._node = node
        self._topic = node.resolve_topic_name(topic)
        self._type = _name_of(message_type)
        self._warned_of: set[tuple[int, ...]] = set()

    def warn_of_publishers(self) -> None:
        """Tell of those that publish what this node does not take."""
        self._warn(self._node.get_publishers_info_by_topic(self._topic), "publishes", "takes")

    def warn_of_subscriptions(self) -> None:
        """Tell of those that take what this node does not publish."""
        self._warn(self._node.get_subscriptions_info_by_topic(self._topic), "takes", "publishes")

    def _warn(self, endpoints: Collection[Any], do: str, this_does: str) -> None:
        others = {tuple(each.endpoint_gid): each for each in endpoints if each.topic_type != self._type}
        for gid in others.keys() - self._warned_of:
            other = others[gid]
            advice = (
                f" Set {STAMPED_CMD_VEL.name} to the same value in both."
                if other.topic_type in _SETTLED_BY_PARAMETER
                else ""
            )
            self._node.get_logger().warning(
                f"{other.node_namespace.rstrip('/')}/{other.node_name} {do} {other.topic_type} on {self._topic}, where "
                f"this node {this_does} {self._type}: nothing of that arrives.{advice} This is logged once."
            )
        self._warned_of = set(others)


def _name_of(message_type: type) -> str:
    package, _, _ = message_type.__module__.partition(".")
    return f"{package}/msg/{message_type.__name__}"


_SETTLED_BY_PARAMETER = {_name_of(Twist), _name_of(TwistStamped)}
