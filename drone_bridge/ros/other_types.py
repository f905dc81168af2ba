# SPDX-License-Identifier: Apache-2.0
"""OtherTypes: warns of publishers and subscriptions with another type on a topic."""

from collections.abc import Collection
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node

from drone_bridge.ros.node.common_parameters import STAMPED_CMD_VEL


class OtherTypes:
    """Check of a topic's endpoints. Warns once of each one with another type, which DDS never connects to ours."""

    def __init__(self, node: Node, topic: str, message_type: type) -> None:
        """`message_type` is the type of this node's subscription or publisher."""
        self._node = node
        self._topic = node.resolve_topic_name(topic)
        self._type = _name_of(message_type)
        self._warned_of: set[tuple[int, ...]] = set()

    def warn_of_publishers(self) -> None:
        """Warn of publishers with another type than this node's subscription."""
        self._warn(self._node.get_publishers_info_by_topic(self._topic), "publishes", "subscribes to")

    def warn_of_subscriptions(self) -> None:
        """Warn of subscriptions with another type than this node's publisher."""
        self._warn(self._node.get_subscriptions_info_by_topic(self._topic), "subscribes to", "publishes")

    def _warn(self, endpoints: Collection[Any], does: str, this_does: str) -> None:
        others = {tuple(each.endpoint_gid): each for each in endpoints if each.topic_type != self._type}
        for gid in others.keys() - self._warned_of:
            other = others[gid]
            advice = (
                f" Set {STAMPED_CMD_VEL.name} to the same value in both."
                if other.topic_type in _SETTLED_BY_PARAMETER
                else ""
            )
            self._node.get_logger().warning(
                f"{other.node_namespace.rstrip('/')}/{other.node_name} {does} {self._topic} with type "
                f"{other.topic_type}, but this node {this_does} it with type {self._type}: no messages arrive.{advice} "
                "This is logged once."
            )
        self._warned_of = set(others)


def _name_of(message_type: type) -> str:
    package, _, _ = message_type.__module__.partition(".")
    return f"{package}/msg/{message_type.__name__}"


_SETTLED_BY_PARAMETER = {_name_of(Twist), _name_of(TwistStamped)}
