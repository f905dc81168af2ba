# SPDX-License-Identifier: Apache-2.0
"""Namesakes: detects other nodes with the same full name, such as a bridge that was started twice."""

from typing import TYPE_CHECKING

from drone_bridge.net.clock import elapsed_s

if TYPE_CHECKING:
    from rclpy.node import Node

#: Polling period of the ROS graph, and how long a killed node may remain in it.
PERIOD_S = 5.0
GHOST_S = 30.0


class Namesakes:
    """Detector of a shared node name. Parameters, services and `/diagnostics` need unique names."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._looked_s = elapsed_s()
        self._since_s: float | None = None
        self._count = 1

    def problem(self) -> dict[str, object] | None:
        """Return the facts of Obstacle.NODE_NAME, if other nodes have had this name for GHOST_S; else None."""
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
        return {"number": self._count, "name": self._node.get_fully_qualified_name()}
