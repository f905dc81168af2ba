# SPDX-License-Identifier: Apache-2.0
"""OutstandingPackets: what a robot has not answered yet, and whether its answers fall behind. Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

#: Timeout of an answer, s. It is longer for a robot that was measured to take more than half of it, and doubles if no
#: answer comes, up to the latter, which is also that of the first answer on a stream: there it is late, but not lost.
ANSWER_S, MAX_ANSWER_S = 1.0, 4.0
#: Period in which answers are compared with commands, s. Fewer than SOME of these: the robot answers only requests.
WINDOW_S, SOME = 10.0, 0.02
#: Share of the commands below which answers fall behind, on a stream, and of datagrams, which get lost.
ALL, MOST = 0.9, 0.5


class _Packet(NamedTuple):
    request: Any  # None for another packet
    timeout_s: float


class OutstandingPackets:
    """Packets without an answer, oldest first, of a robot that answers each one. Of any, counts of both."""

    def __init__(self, *, is_unknown: bool, is_stream: bool) -> None:
        """`is_unknown`: whether the robot may answer each command."""
        self._is_unknown, self._is_stream = is_unknown, is_stream
        self._packets, self._late = list[_Packet](), 0  # `_late` is the number of those that were not answered in time
        #: Whether the newest answer is that of a request, or of a packet before it that was not answered in time.
        self.is_doubtful = False
        self.restart()

    def restart(self) -> None:
        """Begin a connection."""
        self._late = 0 if self._is_stream else self._late + len(self._packets)
        self._packets, self._timeout_s = [], MAX_ANSWER_S if self._is_stream else ANSWER_S
        self._window_s, self._commands, self._answers = -math.inf, 0, 0
        #: Facts of Obstacle.BEHIND if answers fell behind in the last period, else None. Thread-safe.
        self.behind: dict[str, object] | None = None

    def resume(self, now_s: float) -> None:
        """Resume after a stall of this process, in which answers were dropped, or wait in a stream."""
        self._late += 0 if self._is_stream else len(self._packets)
        self._packets, self._began_s = self._packets if self._is_stream else [], now_s

    def is_busy(self, now_s: float) -> bool:
        """Return whether an answer is awaited. After its timeout all packets count as lost."""
        timeout_s = max((self._timeout_s, *(each.timeout_s for each in self._packets)))
        if self._packets and now_s - self._began_s >= timeout_s:
            self._packets, self._late = [], self._late + len(self._packets)
            self._timeout_s = min(2 * self._timeout_s, MAX_ANSWER_S)
        return bool(self._packets)

    def sent(self, number: int, now_s: float, request: Any = None, timeout_s: float = 0.0) -> None:
        """Add packets. `timeout_s`: how long their answers may take, if longer than others."""
        self._began_s = self._began_s if self._packets else now_s  # from which the oldest packet's answer is awaited
        self._packets += [_Packet(request, timeout_s)] * number

    def answered(self, now_s: float, name: str = "") -> Any:
        """Remove the packet that an answer is for, the oldest, or that of a request, and return its request or None.

        Answers come in order. So those of packets that were not answered in time may be the next ones.
        """
        fitting = (each for each in self._packets if not name or (each.request and each.request.name == name))
        packet = next(fitting, None)
        may_be_late, self._late = self._late > 0 and not name, max(0, self._late - 1)
        self.is_doubtful = may_be_late and packet is not None and packet.request is not None
        if packet is None:
            return None
        self._packets.remove(packet)
        if not (may_be_late or packet.request):
            self._timeout_s = max(ANSWER_S, 2 * (now_s - self._began_s))
        self._began_s = now_s
        return packet.request

    def count_command(self, now_s: float) -> None:
        """Count a command. Once per period, compare the answers with the commands."""
        if not now_s - self._window_s < WINDOW_S:
            least = (ALL if self._is_stream else MOST) * self._commands
            is_behind = self._is_unknown and SOME * self._commands < self._answers < least
            self.behind = {"answers": self._answers, "commands": self._commands} if is_behind else None
            self._window_s, self._commands, self._answers = now_s, 0, 0
        self._commands += 1

    def count_answer(self) -> None:
        """Count an answer that is for no request."""
        self._answers += 1
