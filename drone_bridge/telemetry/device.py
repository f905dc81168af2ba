# SPDX-License-Identifier: Apache-2.0
"""Audience: the operator that a waiting drone sends its telemetry to; and when a waiting drone is called again."""

import math
from collections.abc import Iterator
from typing import Any

#: Seconds between the first two calls of a drone that waits to be called, and the most between later ones.
FIRST_CALL_GAP_S, LONGEST_CALL_GAP_S = 0.5, 2.0


class Audience:
    """The newest operator that has spoken to a waiting drone, until it falls silent."""

    def __init__(self) -> None:
        #: Its address as sockets have it; None without an operator.
        self.operator: Any = None
        self._heard_s = -math.inf

    def hear(self, source: Any, now_s: float) -> None:
        """Note a document of an operator."""
        self.operator, self._heard_s = source, now_s

    def silent_s(self, now_s: float) -> float:
        """Return for how long the operator has been silent, s."""
        return now_s - self._heard_s

    def ends_s(self, timeout_s: float) -> float:
        """Return when the operator has been silent for so long; infinity without an operator."""
        return math.inf if self.operator is None else self._heard_s + timeout_s

    def look(self, now_s: float, timeout_s: float) -> Any:
        """Drop an operator that has been silent for longer than the timeout; return it, None if none was dropped."""
        if now_s <= self.ends_s(timeout_s):
            return None
        dropped, self.operator = self.operator, None
        return dropped


def call_gaps() -> Iterator[float]:
    """Yield the seconds between one call and the next, for ever."""
    gap_s = FIRST_CALL_GAP_S
    while True:
        yield gap_s
        gap_s = min(2 * gap_s, LONGEST_CALL_GAP_S)
