# SPDX-License-Identifier: Apache-2.0
"""Namesakes: notices that another node has a node's full name, as when a bridge is started twice."""

from typing import TYPE_CHECKING

from drone_bridge.net.clock import elapsed_s

if TYPE_CHECKING:
    from rclpy.node import Node

#: How often the graph is looked at, and for how long a node that was killed may still be in it.
PERIOD_S = 5.0
GHOST_S = 30.0
#: The condition, and what mends it.
NAMESAKES = "node_name"
ADVICE = "end one of them, or give it a name or a namespace of its own"


class Namesakes:
    """Whether a node shares its name, by which parameters, services and `/diagnostics` tell nodes apart."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._looked_s = elapsed_s()
        self._since_s: float | None = None
        self._count = 1

    def problem(self) -> str | None:
        """Return how many nodes have this name, if others have had it for longer than a killed node is remembered."""
        now_s = elapsed_s()
        if now_s - self._looked_s >= PERIOD_S:
            self._looked_s = now_s
            own = (self._node.get_name(), self._node.get_namespace())
            self._count = sum(each == own for each in self._node.get_node_names_and_namespaces())
            if self._count <= 1:
                self._since_s = None
            elif self._since_s is None:
                self._since_s = now_s
        if self._since_s is None or now_s - self._since_s < GHOST_S:
            return None
        return f"{self._count} nodes are named {self._node.get_fully_qualified_name()}"
