# SPDX-License-Identifier: Apache-2.0
"""CommandGaps: notices commands that come too seldom, so that the vehicle stops after each of them. Pure."""

import math
from collections import deque

#: Number of gaps in a row that count, and the longest of them, s. Longer ones end a motion on purpose.
NUMBER, LONGEST_S = 3, 3.0


class CommandGaps:
    """Times between moving commands on one topic. Written by one thread at a time, and read by any."""

    def __init__(self) -> None:
        self._gaps_s: deque[float] = deque(maxlen=NUMBER)
        self._received_s = -math.inf

    def received(self, is_zero: bool, now_s: float) -> None:
        """Handle a command that is followed."""
        self._gaps_s.append(now_s - self._received_s)
        self._received_s = -math.inf if is_zero else now_s

    def beyond(self, timeout_s: float, now_s: float) -> float | None:
        """Return the last time between commands, s, if they come more seldom than `timeout_s`, until now; else None."""
        gaps_s = [*self._gaps_s, now_s - self._received_s + timeout_s]
        is_seldom = len(gaps_s) > NUMBER and timeout_s < min(gaps_s) and max(gaps_s) < LONGEST_S + timeout_s
        return gaps_s[-2] if is_seldom else None
