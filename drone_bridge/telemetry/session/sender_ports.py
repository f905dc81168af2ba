# SPDX-License-Identifier: Apache-2.0
"""SenderPorts: decides whether documents from several ports of one address come from one drone. Pure.

Some programs open a socket for each document, a NAT renumbers ports, and a drone that reconnects has another port. All
of these are one drone. Two simulations on one machine are not: then the first port is the drone's. They are
distinguished by the behaviour of ports:

- **Each document from another port**: of the newest RECENT documents of the address, at least CHANGING came from
different ports. A few programs with a port each can't produce that.
- **Moved**: the drone's port is silent for MOVED_S, while MOVED documents in a row came from one other port, which was
never heard between the drone's documents, and whose timestamps continue the drone's.
"""

from collections import deque

RECENT, CHANGING = 8, 6
MOVED, MOVED_S = 3, 0.2
#: Maximum step of timestamps at a move, s.
CONTINUES_S = 2.0
_MAX_OTHERS = 16


class SenderPorts:
    """Source ports of telemetry from one address."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._since: deque[int] = deque(maxlen=MOVED)  # of others, since the last document from the drone's port
        self._others: deque[int] = deque(maxlen=_MAX_OTHERS)  # of programs other than the drone
        self._newest: float | None = None  # timestamp of the drone, s
        self._is_noted = False  # the document for the next `record` is in `_recent`

    @property
    def is_changing(self) -> bool:
        """Whether each document comes from another port."""
        return len(set(self._recent)) >= CHANGING

    def record(self, port: int, timestamp: float | None) -> None:
        """Record a document of the drone."""
        if not self._is_noted:
            self._recent.append(port)
        self._is_noted = False
        self._others.extend(each for each in self._since if each not in self._others)
        self._since.clear()
        self._newest = timestamp

    def is_drones(self, port: int, timestamp: float | None, silent_s: float) -> bool:
        """Return whether a document from another port of the address is the drone's, too.

        `silent_s` is the time since the drone was heard.
        """
        self._recent.append(port)
        self._since.append(port)
        has_moved = silent_s > MOVED_S and self._since.count(port) == MOVED and port not in self._others
        continues = (
            timestamp is not None
            and self._newest is not None
            and self._newest <= timestamp <= self._newest + CONTINUES_S
        )
        is_drones = self.is_changing or (has_moved and continues)
        if is_drones:
            self._since.clear()
            self._is_noted = True
        return is_drones
