# SPDX-License-Identifier: Apache-2.0
"""RobotPort: connections of drivers and discovery requests, as one link for a LinkLoop."""

from collections.abc import Sequence
from typing import Any

from drone_bridge.net.connector import Selectable
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, ReceivedData
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.robot.codec import DISCOVERY_QUERY
from drone_bridge.robot.discovery import DiscoveryResponder


class RobotPort:
    """A TcpPort with an optional responder. The peers of the responder are socket addresses."""

    def __init__(self, drivers: TcpPort, responder: DiscoveryResponder | None) -> None:
        self._drivers, self._responder = drivers, responder
        self.backoff = drivers.backoff
        self._discovery_is_next = False  # alternates, so that neither delays the other

    @property
    def port(self) -> int:
        return self._drivers.port

    def open(self) -> None:
        self._drivers.open()

    def cancel(self) -> None:
        """Do nothing: no call blocks."""

    def files(self) -> Sequence[Selectable]:
        return (*self._drivers.files(), *(self._responder.sockets if self._responder else ()))

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        self._discovery_is_next = not self._discovery_is_next
        if self._discovery_is_next:
            return self._request() or self._drivers.receive()
        return self._drivers.receive() or self._request()

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send to a driver, or to an address that sent a discovery request."""
        if not isinstance(to, tuple):
            self._drivers.send(data, to)
        elif self._responder:
            self._responder.send(bytes(data), to)

    def disconnect(self, peer: Any) -> None:
        self._drivers.disconnect(peer)

    def disconnect_all(self) -> None:
        self._drivers.disconnect_all()

    def close(self) -> None:
        if self._responder:
            self._responder.close()
        self._drivers.close()

    def _request(self) -> ReceivedData | None:
        asker = self._responder.receive() if self._responder else None
        return ReceivedData(DISCOVERY_QUERY, asker) if asker else None
