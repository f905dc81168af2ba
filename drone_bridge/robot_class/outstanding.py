# SPDX-License-Identifier: Apache-2.0
"""OutstandingPackets: what a robot has not answered yet. AnswerRate: whether its answers fall behind. Pure."""

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
    """Packets without an answer, oldest first, of a robot that answers each one."""

    def __init__(self, *, is_stream: bool) -> None:
        """Start without any."""
        self._is_stream = is_stream
        self._packets, self._late = list[_Packet](), 0  # `_late` is the number of those that were not answered in time
        self.restart()

    def restart(self) -> None:
        """Begin a connection."""
        self._late = 0 if self._is_stream else self._late + len(self._packets)
        self._packets, self._timeout_s = [], MAX_ANSWER_S if self._is_stream else ANSWER_S

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

    def answered(self, now_s: float, name: str = "") -> tuple[Any, bool]:
        """Remove the packet that an answer is for, the oldest, or that of a request, and return its request or None.

        Return also whether the answer may be that of a packet before it that was not answered in time: answers come in
        order, so those may be the next ones.
        """
        fitting = (each for each in self._packets if not name or (each.request and each.request.name == name))
        packet = next(fitting, None)
        may_be_late, self._late = self._late > 0 and not name, max(0, self._late - 1)
        if packet is None:
            return None, False
        self._packets.remove(packet)
        if not (may_be_late or packet.request):
            self._timeout_s = max(ANSWER_S, 2 * (now_s - self._began_s))
        self._began_s = now_s
        return packet.request, may_be_late


class AnswerRate(NamedTuple):
    """Counts of commands, and of answers for no request, in a period that began at `began_s`."""

    began_s: float = -math.inf
    commands: int = 0
    answers: int = 0
    behind: dict[str, object] | None = None
    """Facts of Obstacle.BEHIND if answers fell behind in the last period, else None."""

    def commanded(self, now_s: float, least: float) -> AnswerRate:
        """Count a command. `least` is the share of the commands below which answers fall behind."""
        began_s, commands, answers, behind = self
        if not now_s - began_s < WINDOW_S:
            is_behind = SOME * commands < answers < least * commands
            behind = {"answers": answers, "commands": commands} if is_behind else None
            began_s, commands, answers = now_s, 0, 0
        return AnswerRate(began_s, commands + 1, answers, behind)

    def answered(self) -> AnswerRate:
        """Count an answer."""
        return self._replace(answers=self.answers + 1)
