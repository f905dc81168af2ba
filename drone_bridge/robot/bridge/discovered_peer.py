# SPDX-License-Identifier: Apache-2.0
"""DiscoveredPeer: the robot of a name as a link for a LinkLoop; it is looked up by discovery before each attempt."""

from collections.abc import Callable
from typing import Any

from drone_bridge.net.connector import MakeTap
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.robot.discovery import DiscoveryRoute, addresses_of


class DiscoveredPeer(TcpPeer):
    """A TcpPeer whose host is a robot's name."""

    def __init__(
        self,
        name: str,
        port: int,
        on_failure: Callable[[str, float], None],
        *,
        route: DiscoveryRoute,
        timeout_s: float,
        options: StreamOptions,
        wire_log: MakeTap | None = None,
    ) -> None:
        """`port` is the robot's TCP port, `timeout_s` how long to wait for its answer."""
        super().__init__(name, port, on_failure, options=options, wire_log=wire_log)
        self._route, self._timeout_s = route, timeout_s

    def _resolve(self) -> list[Any]:
        """See Connector."""
        return addresses_of(self._host, self._port, self._route, self._timeout_s, self._cancellation)
