# SPDX-License-Identifier: Apache-2.0
"""Audience: the operator that receives a waiting drone's telemetry. Also the intervals of calls to a waiting drone."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

#: First intervals between the calls of a waiting drone, s. The last one is repeated.
CALL_GAPS_S = (0.5, 1.0, 2.0)
#: Silence after which another operator, or another drone, may take the place of the present one, s.
TAKEOVER_S = 5.0


class Audience:
    """Operator that has last sent something to a waiting drone, until it is silent."""

    def __init__(self) -> None:
        #: Its socket address; None without an operator.
        self.operator: Any = None
        self._received_s = -math.inf

    def record(self, source: Any, now_s: float) -> None:
        """Record a document of an operator."""
        self.operator, self._received_s = source, now_s

    def silent_s(self, now_s: float) -> float:
        """Return the time since the operator's last document, s."""
        return now_s - self._received_s

    def ends_s(self, timeout_s: float) -> float:
        """Return the time at which the operator's silence reaches the timeout; infinity without an operator."""
        return math.inf if self.operator is None else self._received_s + timeout_s

    def drop_silent(self, now_s: float, timeout_s: float) -> Any:
        """Drop the operator if it is silent for longer than the timeout; return it, or None."""
        if now_s <= self.ends_s(timeout_s):
            return None
        dropped, self.operator = self.operator, None
        return dropped


def call_gaps() -> Iterator[float]:
    """Return the intervals between calls, s, without end."""
    return itertools.chain(CALL_GAPS_S, itertools.repeat(CALL_GAPS_S[-1]))
