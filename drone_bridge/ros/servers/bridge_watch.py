# SPDX-License-Identifier: Apache-2.0
"""BridgeWatch: liveness of the bridge behind a server's topics, and of its vehicle, by its reports on /diagnostics.

Used for topics and services without a fixed rate. A bridge reports once per second, while Fast DDS takes 20 s to detect
that a participant has disappeared.
"""

import math
from collections.abc import Callable, Collection

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.link_report import LINK_STATUS, PEER_SILENT
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.stall_watch import PROCESS

#: Timeout of the reports of a bridge.
GONE_AFTER_S = 3.0
#: Reported silence after which a vehicle counts as silent.
SILENT_AFTER_S = 1.0
_PERIOD_S = 0.5
_DEPTH = 10


class BridgeWatch:
    """Monitor of a bridge's reports. Written in the executor, safe to read from any thread.

    A bridge that has never reported, such as a third-party node, counts as alive.
    """

    def __init__(
        self, node: ProtocolNode, bridges: Callable[[], Collection[str]], on_change: Callable[[], None] = lambda: None
    ) -> None:
        """Subscribe. `bridges` returns the full names of the nodes that may be the bridge.

        `on_change` is called after a change of `is_gone` or `is_vehicle_silent`.
        """
        #: Whether the bridge has stopped reporting.
        self.is_gone = False
        #: Whether the bridge is connected to a vehicle that has been silent for SILENT_AFTER_S.
        self.is_vehicle_silent = False
        self._bridges, self._on_change = bridges, on_change
        self._received_s: float | None = None  # time of the last report, by `elapsed_s`
        node.make_subscription(DiagnosticArray, "/diagnostics", self._take, _DEPTH)
        node.make_timer(_PERIOD_S, self._check_reports)

    def _take(self, message: DiagnosticArray) -> None:
        names: Collection[str] | None = None
        for status in message.status:
            if not status.name.endswith(LINK_STATUS):
                continue
            names = self._bridges() if names is None else names
            if f"/{status.name.removesuffix(LINK_STATUS)}" in names:
                self._received_s = elapsed_s()
                self._update(is_gone=False, is_vehicle_silent=_silence_s(status) >= SILENT_AFTER_S)

    def _check_reports(self) -> None:
        # A stalled process receives no reports.
        if self._received_s is not None and min(elapsed_s() - self._received_s, PROCESS.running_s()) > GONE_AFTER_S:
            self._update(is_gone=True, is_vehicle_silent=False)

    def _update(self, *, is_gone: bool, is_vehicle_silent: bool) -> None:
        if (is_gone, is_vehicle_silent) != (self.is_gone, self.is_vehicle_silent):
            self.is_gone, self.is_vehicle_silent = is_gone, is_vehicle_silent
            self._on_change()


def publishing_nodes(node: ProtocolNode, topic: str) -> set[str]:
    """Return the full names of the nodes that publish a topic."""
    publishers = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return {f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in publishers}


def _silence_s(status: DiagnosticStatus) -> float:
    """Return the reported silence of a connected vehicle, s; NaN if it is not reported."""
    text = next((each.value for each in status.values if each.key == PEER_SILENT), "")
    try:
        return float(text)
    except ValueError:
        return math.nan
