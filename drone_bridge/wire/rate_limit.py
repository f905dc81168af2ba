# SPDX-License-Identifier: Apache-2.0
"""Limits the rate at which messages that arrive irregularly are forwarded."""

from __future__ import annotations

import math


class RateLimit:
    """A rate limit that tolerates jitter of half a period."""

    def __init__(self) -> None:
        self._due_s = -math.inf

    def is_early(self, now_s: float, rate: float) -> bool:
        """Return whether a message would come too early at `rate` per second."""
        return now_s < self._due_s - 0.5 / rate

    def is_due(self, now_s: float, rate: float) -> bool:
        """Return whether the next message is due at `rate` per second; true once per period."""
        if self.is_early(now_s, rate):
            return False
        period_s = 1 / rate
        is_in_step = now_s <= self._due_s + period_s / 2
        self._due_s = (self._due_s if is_in_step else now_s) + period_s
        return True
