# SPDX-License-Identifier: Apache-2.0
"""FirstSenders: which of the hosts that send to a client is its robot. Pure."""

from __future__ import annotations

import math
from typing import Any

from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.wire import RemoteProtocolError
from drone_bridge.wire.addresses import ANY, AllowedPeers, peer_name, same_host

#: Silence after which another host may take the place of the present robot, s.
TAKEOVER_S = 5.0


class FirstSenders:
    """Place of one robot that sends first: the first allowed host whose datagram its class does not reject."""

    def __init__(self, allowed: AllowedPeers | None) -> None:
        """Start without a robot. `allowed`: None allows all."""
        self._allowed, self._present, self._heard_s = allowed or AllowedPeers([ANY]), None, -math.inf

    def refusal(self, data: bytes, source: Any, end: RobotClassConnection, now_s: float) -> str:
        """Return why a datagram is not the robot's, a sentence, or "". `end` decodes."""
        name = peer_name(source)
        if not self._allowed.allows(source[0]):
            return f"{name} was refused: it is not in allowed_peers."
        if self._present is None or not same_host(source, self._present):
            if now_s - self._heard_s <= TAKEOVER_S:
                return f"{name} was refused: {peer_name(self._present)} is connected."
            trial = end.renewed()
            trial.receive_data(data, "")
            try:
                trial.next_event()
            except RemoteProtocolError as error:
                return f"{name} was refused: {error}"
        self._present, self._heard_s = source, now_s
        return ""
