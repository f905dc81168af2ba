# SPDX-License-Identifier: Apache-2.0
"""Publishers for the topics of a bag, with the recorded QoS."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosReliability

from drone_bridge.tools.bags.bag import BagTopic
from drone_bridge.tools.shared.interfaces import UnknownTypeError, import_interface, type_hash

DEFAULT_DEPTH = 10
# Limit of the added depths of several publishers, such as those of latched transforms.
MAX_DEPTH = 1000


def is_latched(topic: BagTopic) -> bool:
    """Return whether any publisher was latched (transient local)."""
    return any(offer.durability is QosDurability.TRANSIENT_LOCAL for offer in topic.offers)


def profile_of(offers: Sequence[Qos], type_name: str = "") -> QoSProfile:
    """Return a profile compatible with all subscriptions that a recorded publisher was compatible with.

    Of static transforms, a late subscriber needs those of all publishers, which often have depth 1 each.
    """
    reliable = not offers or any(offer.reliability is QosReliability.RELIABLE for offer in offers)
    latched = any(offer.durability is QosDurability.TRANSIENT_LOCAL for offer in offers)
    is_static = latched and type_name == "tf2_msgs/msg/TFMessage"
    depth = MAX_DEPTH if is_static else sum(offer.depth for offer in offers)
    keeps_all = any(offer.history is QosHistory.KEEP_ALL for offer in offers)
    return QoSProfile(
        history=HistoryPolicy.KEEP_ALL if keeps_all else HistoryPolicy.KEEP_LAST,
        depth=min(MAX_DEPTH, max(1, depth)) if offers else DEFAULT_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def make_publishers(
    node: Node, topics: Iterable[BagTopic], remapped: Mapping[str, str], skip: Callable[[str], None]
) -> "dict[BagTopic, Publisher[Any]]":
    """Create a publisher for each topic that can be published here. For a name with two types, only the first has one.

    Args:
        node: node that publishes.
        topics: topics to play.
        remapped: new names by recorded ones.
        skip: called with a sentence for each topic that can't be published here.
    """
    publishers: dict[BagTopic, Publisher[Any]] = {}
    for topic in topics:
        if topic.name in {published.name for published in publishers}:
            skip(f"'{topic.name}' was recorded with another type as well, '{topic.type_name}', which is skipped.")
            continue
        try:
            message_class = import_interface(topic.type_name)
            installed = type_hash(topic.type_name)
        except UnknownTypeError as error:
            skip(f"'{topic.name}' is skipped: {error}")
            continue
        if topic.type_hash and installed and topic.type_hash != installed:
            skip(f"'{topic.name}' is skipped: the '{topic.type_name}' that was recorded is not the one installed here.")
            continue
        name = remapped.get(topic.name, topic.name)
        try:
            profile = profile_of(topic.offers, topic.type_name)
            publishers[topic] = node.create_publisher(message_class, name, profile)
        except (NameValidationException, ValueError) as error:  # ValueError: a name with braces
            why = str(error).partition(":\n")[0].partition(", at ")[0]
            skip(f"'{topic.name}' is skipped: it can't be published as '{name}': {why}.")
    return publishers
