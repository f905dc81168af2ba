# SPDX-License-Identifier: Apache-2.0
"""LiveTopics: keeps a recording from the topics of live vehicles.

A recorded command would move the vehicle that subscribes to its topic, and a recorded measurement would be mixed with
those of the node that publishes on its topic. Such topics are left out, also those of nodes that start while the
recording is played: their publishers are destroyed, for a live node would warn of them. Of several players, which all
have the same name, the first one goes on: a player leaves out topics of others only when it starts.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rclpy.node import Node, TopicEndpointInfo
from rclpy.publisher import Publisher

from drone_bridge.ros.commands.cmd_vel_type import UNKNOWN_NODE
from drone_bridge.ros.hold.hold_services import HoldServices, node_of

LOOK_PERIOD_S = 1.0
#: Time from its start in which a player discovers others.
DISCOVERY_S = 1.0
#: Topics of every node, which move nothing.
_OF_EVERY_NODE = ("/rosout", "/parameter_events")


class LiveTopics:
    """Decides which topics are published, from the present nodes. For the thread that plays only."""

    def __init__(self, node: Node, names: Iterable[str], report: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            node: node of the player.
            names: full names of the topics to guard, as they are published.
            report: called with a sentence for topics that are left out from there on.
        """
        self._node, self._report = node, report
        self._guarded = set(names) - set(_OF_EVERY_NODE)
        self._left_out: set[str] = set()
        self._services = HoldServices(node, lambda _: False)
        self._refresh_at = 0.0
        self._discovered_at = time.monotonic() + DISCOVERY_S
        self._yields = True  # to other players

    def allows(self, name: str) -> bool:
        """Return whether to publish on a topic. Looks at the graph if that was long ago."""
        if (now_s := time.monotonic()) >= self._refresh_at:
            self._refresh_at = now_s + LOOK_PERIOD_S
            self.refresh()
        return name not in self._left_out

    def refresh(self) -> None:
        """Look at the graph, and report topics that are left out now."""
        found: dict[str, list[str]] = {}
        vehicles = {node_of(service) for service in self._services.all()}
        for name in sorted(self._guarded - self._left_out):
            if reason := self._reason(name, vehicles):
                found.setdefault(reason, []).append(name)
        self._yields &= time.monotonic() < self._discovered_at
        for reason, names in found.items():
            self._left_out.update(names)
            for publisher in [each for each in self._node.publishers if each.topic_name in names]:
                self._node.destroy_publisher(publisher)
            self._report(
                f"Left out, as {reason}: {', '.join(names)}. To play them all the same, use --topics or --remap."
            )

    def _reason(self, name: str, vehicles: set[str]) -> str:
        """Return why a topic is left out, or an empty text."""
        commanded = vehicles.intersection(_nodes(self._node.get_subscriptions_info_by_topic(name)))
        if commanded:
            return f"{' and '.join(sorted(commanded))} would take them as commands"
        own = self._node.get_fully_qualified_name()
        publishers = [*_nodes(self._node.get_publishers_info_by_topic(name))]
        publishing = {*publishers} - {own}
        if self._yields and publishers.count(own) > sum(each.topic_name == name for each in self._node.publishers):
            publishing.add(f"another {own}")
        return f"{' and '.join(sorted(publishing))} publishes them now" if publishing else ""


class GuardedPublisher:
    """Publisher of a topic that `LiveTopics` may leave out."""

    def __init__(self, publisher: "Publisher[Any]", live: LiveTopics) -> None:
        self._publisher, self._live = publisher, live
        self.topic_name = publisher.topic_name  # also once it is destroyed

    def publish(self, message: Any) -> None:
        """Publish a message, unless its topic is left out."""
        if self._live.allows(self.topic_name):
            self._publisher.publish(message)


def _nodes(endpoints: Iterable[TopicEndpointInfo]) -> Iterator[str]:
    for each in endpoints:
        is_new = each.node_name == UNKNOWN_NODE
        yield "a new node" if is_new else f"{each.node_namespace.rstrip('/')}/{each.node_name}"
