# SPDX-License-Identifier: Apache-2.0
"""inspect_nodes: each running bridge and server, as a RunningNode with its own report, which names its obstacles."""

from dataclasses import dataclass
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node

from drone_bridge.kind import kinds
from drone_bridge.ros.node.link_report import COMMANDER, LINK_STATUS
from drone_bridge.tools.shared.discovery import DISCOVERY_S, QUIET_S
from drone_bridge.tools.shell.node import spin_until

#: Nodes report once per second.
LISTEN_S = 5.0


@dataclass(slots=True)
class RunningNode:
    """One of our nodes, with its last reported status."""

    name: str
    title: str
    """Name of the vehicle for its owner, such as "tracked robot"."""
    status: DiagnosticStatus | None

    @property
    def commander(self) -> str:
        """Nodes whose commands its vehicle follows, with their topic; empty if none."""
        return next((each.value for each in self.status.values if each.key == COMMANDER), "") if self.status else ""


def inspect_nodes() -> list[RunningNode]:
    """Return our nodes in this ROS domain, with their reports. Blocks for some seconds."""
    node = rclpy.create_node("_drone_bridge_doctor", start_parameter_services=False)
    statuses: dict[str, DiagnosticStatus] = {}

    def note(array: DiagnosticArray) -> None:
        for status in array.status:
            if status.name.endswith(LINK_STATUS):
                statuses[f"/{status.name.removesuffix(LINK_STATUS)}"] = status

    node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    _wait_for_discovery(node)
    titles = {
        f"{kind.name}_{side}": kind.title or kind.name for kind in kinds().values() for side in ("bridge", "server")
    }
    found = {
        f"{namespace.rstrip('/')}/{name}": titles[name]
        for name, namespace in sorted(node.get_node_names_and_namespaces())
        if name in titles
    }
    spin_until(node, lambda: {*statuses} >= {*found}, LISTEN_S)
    return [RunningNode(name, title, statuses.get(name)) for name, title in found.items()]


def _wait_for_discovery(node: Node) -> None:
    """Wait until no more nodes and endpoints are discovered, for DISCOVERY_S at most."""
    found: list[Any] = []
    for _ in range(round(DISCOVERY_S / QUIET_S)):
        spin_until(node, lambda: False, QUIET_S)
        found.append(sorted(node.get_node_names_and_namespaces()))
        if found[-2:] == [found[-1]] * 2:
            return
