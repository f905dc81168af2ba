# SPDX-License-Identifier: Apache-2.0
"""SenderPorts: whether documents from several ports of one address come from one drone. Pure.

A first program opens a socket for each document; a NAT renumbers; a drone that reconnects takes another port. All of
these are one drone. Two simulations on one machine are not, and the port that came first is the drone's. They are told
apart by what ports do:

- **Each document from another port**: of the newest RECENT documents of the address at least CHANGING came from
  different ports. No few programs with a port each do that.
- **Moved**: the drone's port is silent for MOVED_S, while MOVED documents in a row came from one other port, which was
  never heard in between the drone's, and whose timestamps go on where the drone's ended.
"""

from collections import deque

RECENT, CHANGING = 8, 6
MOVED, MOVED_S = 3, 0.2
#: How far timestamps may be ahead after a move, s.
CONTINUES_S = 2.0
_MAX_OTHERS = 16


class SenderPorts:
    """The ports that telemetry of one address has come from."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._since: deque[int] = deque(maxlen=MOVED)  # of others, since the drone's own was heard
        self._others: deque[int] = deque(maxlen=_MAX_OTHERS)  # of programs beside the drone
        self._newest: float | None = None  # timestamp of the drone, s
        self._is_noted = False  # the document that `hear` is about to get is in `_recent`

    @property
    def is_changing(self) -> bool:
        """Whether each document comes from another port."""
        return len(set(self._recent)) >= CHANGING

    def hear(self, port: int, timestamp: float | None) -> None:
        """Note a document of the drone."""
        if not self._is_noted:
            self._recent.append(port)
        self._is_noted = False
        self._others.extend(each for each in self._since if each not in self._others)
        self._since.clear()
        self._newest = timestamp

    def is_drones(self, port: int, timestamp: float | None, silent_s: float) -> bool:
        """Return whether a document from another port of the address is the drone's too.

        `silent_s`: since the drone was heard.
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
