# SPDX-License-Identifier: Apache-2.0
"""RateLimit: throttles messages that arrive irregularly."""

from __future__ import annotations

import math


class RateLimit:
    """Rate limit that tolerates a jitter of half a period."""

    def __init__(self) -> None:
        self._due_s = -math.inf

    def is_due(self, now_s: float, rate: float) -> bool:
        """Return whether the next message is due at `rate`, Hz. True once per period."""
        period_s = 1 / rate
        if now_s < self._due_s - period_s / 2:
            return False
        is_in_step = now_s <= self._due_s + period_s / 2
        self._due_s = (self._due_s if is_in_step else now_s) + period_s
        return True
