# SPDX-License-Identifier: Apache-2.0
"""CmdVelPublisher: publisher of cmd_vel with the type of its subscribers, Twist or TwistStamped.

A DDS participant can have a topic with one type at a time. A bridge therefore subscribes to `cmd_vel` with the type of
its publishers, and our own publishers have the type of their subscribers: Twist, until somebody else needs the other.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node

from drone_bridge.ros.commands.velocity_messages import as_published
from drone_bridge.ros.type_names import endpoints_by_type, name_of_type
from drone_bridge.session.obstacles import Obstacle

#: Period in which publishers follow their subscribers, s. Bridges follow their publishers in another one, so that two
#: that follow each other agree.
FOLLOWING_PERIOD_S, BRIDGE_PERIOD_S = 1.0, 1.1
#: Nodes that only observe. So do nodes with hidden names, such as that of ros2 topic echo.
OBSERVERS = frozenset({"recorder", "rosbag2_recorder", "web_bridge", "foxglove_bridge"})
#: Node name of an endpoint whose participant has not been discovered yet.
UNKNOWN_NODE = "_NODE_NAME_UNKNOWN_"


def names_of(endpoints: Iterable[Any]) -> list[str]:
    """Return the full names of the nodes of endpoints, as far as they are known."""
    known = (each for each in endpoints if each.node_name != UNKNOWN_NODE)
    return sorted({f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in known})


def bridges(node: Node, topic: str) -> list[str]:
    """Return the full names of the bridges that follow a topic. A server may listen to it, but has no helm."""
    names = names_of(node.get_subscriptions_info_by_topic(topic))
    return [each for each in names if node.count_subscribers(f"{each}/helm")]


def goal_topics(node: Node) -> tuple[str, str]:
    """Return the full names of the topics for our controllers, goals and landings, beside cmd_vel, perhaps remapped."""
    topic = node.resolve_topic_name("cmd_vel")
    return f"{topic}_goal", f"{topic}_landing"


def followed_type(present: type[Any], endpoints: Iterable[Any]) -> type[Any]:
    """Return the type of a topic of velocities for the endpoints of other nodes: the present one while any has it."""
    found = {each.topic_type for each in endpoints}
    other: type[Any] = Twist if present is TwistStamped else TwistStamped
    return other if name_of_type(other) in found and name_of_type(present) not in found else present


def independent(node: Node, publishers: Collection[Any], present: type[Any]) -> list[Any]:
    """Return the publishers whose type does not follow that of this node: not our servers."""
    if all(each.topic_type == name_of_type(present) for each in publishers):
        return list(publishers)  # as usual
    return [
        each
        for each in publishers
        if not node.count_publishers(f"{each.node_namespace.rstrip('/')}/{each.node_name}/hold_status")
    ]


def followers(node: Node, topic: str) -> list[Any]:
    """Return the subscriptions to a topic of other nodes than observers and the node itself."""
    own = node.get_name(), node.get_namespace()
    found = [
        each
        for each in node.get_subscriptions_info_by_topic(node.resolve_topic_name(topic))
        if (each.node_name, each.node_namespace) != own and each.node_name not in OBSERVERS
    ]
    return [each for each in found if not each.node_name.startswith("_") or each.node_name == UNKNOWN_NODE]


class CmdVelPublisher:
    """Publisher of cmd_vel. Not thread-safe: its owner has a lock. `follow` is for the executor."""

    def __init__(self, node: Node, create: Callable[[type], Any]) -> None:
        """`create` creates the node's publisher with a type."""
        self._node, self._create = node, create
        self._publisher: Any = create(Twist)
        #: Facts of Obstacle.OTHER_TYPE, or None.
        self.ignored: dict[str, object] | None = None

    def __getattr__(self, name: str) -> Any:
        """Return the rest of rclpy's present publisher."""
        return getattr(self._publisher, name)

    def wanted(self) -> type[Any]:
        """Return the type of the subscribers. Logs which of them get nothing, as they have different types."""
        found = followers(self._node, self.topic_name)
        wanted = followed_type(self.msg_type, found)
        ignored = endpoints_by_type(each for each in found if each.topic_type != name_of_type(wanted))
        facts = {"topic": self.topic_name, "followed": name_of_type(wanted), "ignored": ignored} if ignored else None
        if facts and not self.ignored:
            self._node.get_logger().warning(Obstacle.OTHER_TYPE.sentence(**facts))
        self.ignored = facts
        return wanted

    def change(self, message_type: type[Any]) -> None:
        """Publish with another type. This node must have no other endpoint of the topic."""
        self._node.destroy_publisher(self._publisher)
        self._publisher = self._create(message_type)

    def publish(self, message: Twist | TwistStamped) -> None:
        """Publish a velocity, converted to the present type."""
        self._publisher.publish(as_published(message, self._publisher, self._node))
