# SPDX-License-Identifier: Apache-2.0
"""inspect_nodes: state of each running bridge and server, and faults of the topics of each RunningNode.

Only certain faults of a topic are reported: another type, incompatible QoS, a missing publisher of a topic that a
server needs, and commands without a subscriber.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.node import Node, TopicEndpointInfo
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, qos_check_compatible, qos_profile_sensor_data

from drone_bridge.kind import ProtocolKind, kinds, load
from drone_bridge.ros.commands.cmd_vel_type import OBSERVERS
from drone_bridge.ros.node.link_report import LINK_STATUS
from drone_bridge.ros.servers.neutral_repeater import COMMAND_TOPICS
from drone_bridge.ros.topics.table import Topic
from drone_bridge.tools.shared.discovery import DISCOVERY_S, QUIET_S
from drone_bridge.tools.shell.node import spin_until

#: Nodes report once per second: their link, and what a server lacks.
LISTEN_S = 5.0
#: Topics of every node, and topics that are not specific to the vehicle.
_OF_NODES = ("/rosout", "/parameter_events", "/diagnostics", "/clock", "/tf", "/tf_static")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A publisher or a subscription, with the full name of its node."""

    node: str
    type_name: str
    """package/msg/Name"""
    qos: QoSProfile


@dataclass(slots=True)
class NodeTopic:
    """Topic of one of our nodes, with its endpoints."""

    topic: str
    is_taken: bool
    """Whether the node subscribes to it. Otherwise it publishes it."""
    own: list[Endpoint]
    others: list[Endpoint]
    row: Topic | None = None
    """Row in the table of a server's topics, which has the effect of a missing topic. None for other topics."""

    @property
    def is_command(self) -> bool:
        return self.topic.rpartition("/")[2] in COMMAND_TOPICS


@dataclass(slots=True)
class RunningNode:
    """One of our nodes, with its last reported status and its topics."""

    name: str
    title: str
    """Name of the vehicle for its owner, such as "tracked robot"."""
    status: DiagnosticStatus | None
    topics: list[NodeTopic]
    frame: str = ""
    """Frame of its vehicle by its odometry."""


# Findings.


def shared_frames(nodes: Collection[RunningNode]) -> Iterator[tuple[str, str]]:
    """Yield each frame that several vehicles have, and a sentence."""
    for frame in sorted({each.frame for each in nodes if each.frame}):
        names = [each.name for each in nodes if each.frame == frame]
        if len(names) > 1:
            have = f"{' and '.join(names)} have it: on /tf, it jumps from one vehicle to the other"
            yield frame, f"{have}. Give each a frame_prefix of its own, such as frame_prefix:=second/."


def problems(topics: Collection[NodeTopic]) -> Iterator[tuple[str, str]]:
    """Yield each fault of the topics of a node: the topic, and a sentence."""
    for node_topic in topics:
        types = sorted({each.type_name for each in node_topic.own})
        does = "publishes" if node_topic.is_taken else "subscribes to"
        for other in node_topic.others:
            if other.type_name not in types:
                expected = " or ".join(types)
                yield (
                    node_topic.topic,
                    f"{other.node} {does} {other.type_name}, not {expected}: no messages arrive.",
                )
            elif sentence := _qos_problem(node_topic, other):
                yield node_topic.topic, sentence
        if sentence := _missing(node_topic, topics):
            yield node_topic.topic, sentence
    commands = [node_topic for node_topic in topics if node_topic.is_command and not node_topic.is_taken]
    subscribers = {each.node.rpartition("/")[2] for node_topic in commands for each in node_topic.others}
    if commands and not subscribers - OBSERVERS:
        yield commands[0].topic, "No node subscribes to it, or to another command topic: commands move no vehicle."


def _missing(node_topic: NodeTopic, topics: Collection[NodeTopic]) -> str:
    if not node_topic.is_taken or node_topic.row is None or not node_topic.row.needed:
        return ""
    taken = {each.row.name for each in topics if each.is_taken and each.row and each.others}
    if taken & set(node_topic.row.instead):
        return ""
    return "" if node_topic.others else f"It has no publisher: {node_topic.row.needed}."


def _qos_problem(node_topic: NodeTopic, other: Endpoint) -> str:
    """Return a sentence if no QoS that the node requests or offers is compatible; empty if one is.

    A server may have several subscriptions, with different requests.
    """
    pairs = [
        (other, own) if node_topic.is_taken else (own, other)
        for own in node_topic.own
        if own.type_name == other.type_name
    ]
    verdicts = [qos_check_compatible(offer.qos, request.qos) for offer, request in pairs]
    if all(verdict == QoSCompatibility.ERROR for verdict, _ in verdicts):
        return f"The QoS of {other.node} is incompatible ({verdicts[0][1].strip().rstrip(';')}): no messages arrive."
    asks_latched = any(own.qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for own in node_topic.own)
    if node_topic.is_taken and asks_latched and other.qos.durability == DurabilityPolicy.VOLATILE:
        return (
            f"{other.node} publishes it with durability volatile instead of transient_local: messages from before the "
            "subscription are lost."
        )
    return ""


# Inspection.


def inspect_nodes() -> list[RunningNode]:
    """Return our nodes in this ROS domain, with their reports and topics. Blocks for some seconds."""
    node = rclpy.create_node("_drone_bridge_doctor", start_parameter_services=False)
    statuses: dict[str, DiagnosticStatus] = {}

    def note(array: DiagnosticArray) -> None:
        for status in array.status:
            if status.name.endswith(LINK_STATUS):
                statuses[f"/{status.name.removesuffix(LINK_STATUS)}"] = status

    node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    _wait_for_discovery(node)
    ours = _our_nodes(node)
    found = {name: _topics_of(node, name, rows) for name, (_, rows) in ours.items()}
    frames: dict[str, str] = {}
    given = ((name, each.topic) for name, topics in found.items() for each in topics if not each.is_taken)
    odometry = {name: topic for name, topic in given if topic.endswith("/odom")}
    for name, topic in odometry.items():
        note_frame = partial(lambda name, message: frames.update({name: message.child_frame_id}), name)
        node.create_subscription(Odometry, topic, note_frame, qos_profile_sensor_data)
    spin_until(node, lambda: {*statuses} >= {*found} and {*frames} == {*odometry}, LISTEN_S)
    titles = {name: kind.title or kind.name for name, (kind, _) in ours.items()}
    return [
        RunningNode(name, titles[name], statuses.get(name), topics, frames.get(name, ""))
        for name, topics in found.items()
    ]


def _wait_for_discovery(node: Node) -> None:
    """Wait until no more nodes and endpoints are discovered, for DISCOVERY_S at most."""
    found: list[Any] = []
    for _ in range(round(DISCOVERY_S / QUIET_S)):
        spin_until(node, lambda: False, QUIET_S)
        topics = [topic for topic, _ in node.get_topic_names_and_types()]
        counts = sum(map(node.count_publishers, topics)), sum(map(node.count_subscribers, topics))
        found.append((sorted(node.get_node_names_and_namespaces()), counts))
        if found[-2:] == [found[-1]] * 2:
            return


def _our_nodes(node: Node) -> dict[str, tuple[ProtocolKind, Mapping[str, Topic]]]:
    """Return our nodes by full name: the protocol of each, and the rows of its subscriptions that a server may need."""
    found: dict[str, tuple[ProtocolKind, Mapping[str, Topic]]] = {}
    by_node = {f"{kind.name}_{side}": (kind, side) for kind in kinds().values() for side in ("bridge", "server")}
    for name, namespace in sorted(node.get_node_names_and_namespaces()):
        if name in by_node:
            kind, side = by_node[name]
            rows = load(kind.topics).rows if side == "server" else ()
            found[f"{namespace.rstrip('/')}/{name}"] = kind, {row.name: row for row in rows if row.from_ros}
    return found


def _topics_of(node: Node, name: str, rows: Mapping[str, Topic]) -> list[NodeTopic]:
    namespace, _, short_name = name.rpartition("/")
    topics = []
    for is_taken, by_node in (
        (True, node.get_subscriber_names_and_types_by_node),
        (False, node.get_publisher_names_and_types_by_node),
    ):
        for topic, _ in sorted(by_node(short_name, namespace or "/")):
            if topic in _OF_NODES or topic.startswith(f"{name}/"):
                continue
            published = list(map(_endpoint, node.get_publishers_info_by_topic(topic)))
            taken = list(map(_endpoint, node.get_subscriptions_info_by_topic(topic)))
            own, others = (taken, published) if is_taken else (published, taken)
            topics.append(
                NodeTopic(
                    topic,
                    is_taken,
                    [each for each in own if each.node == name],
                    [each for each in others if each.node != name and not each.node.rpartition("/")[2].startswith("_")],
                    rows.get(topic.removeprefix(f"{namespace}/")) if is_taken else None,
                )
            )
    return [node_topic for node_topic in topics if node_topic.own]  # otherwise it has disappeared meanwhile


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    return Endpoint(f"{info.node_namespace.rstrip('/')}/{info.node_name}", info.topic_type, info.qos_profile)
