# SPDX-License-Identifier: Apache-2.0
"""warn_of_other_types: warns of publishers and subscriptions with another type on a topic."""

from typing import Any

from geometry_msgs.msg import Twist, TwistStamped

from drone_bridge.ros.node.common_parameters import STAMPED_CMD_VEL


def warn_of_other_types(node: Any, topic: str, message_type: Any, *, publishes: bool) -> None:
    """Warn once of each endpoint with another type than this node's, which DDS never connects to ours.

    `publishes`: whether this node publishes on the topic, and others subscribe to it.
    """
    name, type_name, warned_of = node.resolve_topic_name(topic), name_of_type(message_type), set[tuple[int, ...]]()
    find = node.get_subscriptions_info_by_topic if publishes else node.get_publishers_info_by_topic
    does, this_does = ("subscribes to", "publishes") if publishes else ("publishes", "subscribes to")

    def warn() -> None:
        others = {tuple(each.endpoint_gid): each for each in find(name) if each.topic_type != type_name}
        for gid in others.keys() - warned_of:
            other = others[gid]
            advice = (
                f" Set {STAMPED_CMD_VEL.name} to the same value in both."
                if other.topic_type in _SETTLED_BY_PARAMETER
                else ""
            )
            node.get_logger().warning(
                f"{other.node_namespace.rstrip('/')}/{other.node_name} {does} {name} with type {other.topic_type}, but "
                f"this node {this_does} it with type {type_name}: no messages arrive.{advice} This is logged once."
            )
        warned_of.clear()
        warned_of.update(others)

    node.each_second(warn)


def name_of_type(message_type: type) -> str:
    """Return package/msg/Name, or package/srv/Name of a service."""
    package, kind, *_ = message_type.__module__.split(".")
    return f"{package}/{kind}/{message_type.__name__}"


_SETTLED_BY_PARAMETER = {name_of_type(Twist), name_of_type(TwistStamped)}
