# SPDX-License-Identifier: Apache-2.0
"""OutstandingPackets: what a robot that answers each packet has not answered yet. Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

#: Timeout of an answer, unless its request has a longer one, and how long one may still come after it, s. Commands pile
#: up at a robot that takes longer. A stop awaits none.
ANSWER_S = 3.0


class _Packet(NamedTuple):
    request: Any  # None for another packet
    timeout_s: float


class OutstandingPackets:
    """Packets without an answer, oldest first, of a robot that answers each one."""

    def __init__(self, *, is_stream: bool) -> None:
        """Start without any."""
        self._is_stream = is_stream
        self._began_s = self._late_until_s = -math.inf
        self.restart()

    def restart(self) -> None:
        """Begin a connection."""
        self._packets = list[_Packet]()

    def resume(self, now_s: float) -> None:
        """Resume after a stall of this process, in which datagrams were dropped. A stream still has its answers."""
        self._began_s = now_s
        if not self._is_stream:
            self._give_up(now_s)

    def is_busy(self, now_s: float) -> bool:
        """Return whether an answer is awaited. After its timeout all packets count as lost."""
        if now_s - self._began_s >= max((ANSWER_S, *(each.timeout_s for each in self._packets))):
            self._give_up(now_s)
        return bool(self._packets)

    def sent(self, number: int, now_s: float, request: Any = None, timeout_s: float = 0.0) -> None:
        """Add packets. `timeout_s`: how long their answers may take, if longer than others."""
        self._began_s = self._began_s if self._packets else now_s  # from which the oldest packet's answer is awaited
        self._packets += [_Packet(request, timeout_s)] * number

    def answered(self, now_s: float, name: str = "") -> tuple[Any, bool]:
        """Remove the packet that an answer is for, the oldest, or that of a request, and return its request or None.

        Return also whether the answer may be that of a packet that counts as lost.
        """
        fitting = (each for each in self._packets if not name or (each.request and each.request.name == name))
        if (packet := next(fitting, None)) is None:
            return None, False
        self._packets.remove(packet)
        self._began_s = now_s
        return packet.request, not name and now_s <= self._late_until_s

    def _give_up(self, now_s: float) -> None:
        self._late_until_s = now_s + ANSWER_S if self._packets else self._late_until_s
        self._packets = []
