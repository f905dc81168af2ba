# SPDX-License-Identifier: Apache-2.0
"""When something that comes as it likes is to be sent on, at a rate."""

from __future__ import annotations

import math


class Pace:
    """Says when it is time. What comes at about the rate need not come exactly on time."""

    def __init__(self) -> None:
        self._due_s = -math.inf

    def is_due(self, now_s: float, rate: float) -> bool:
        """Return whether it is time for the next one, `rate` of them per second; true once per period."""
        period_s = 1 / rate
        if now_s < self._due_s - period_s / 2:
            return False
        is_in_step = now_s <= self._due_s + period_s / 2
        self._due_s = (self._due_s if is_in_step else now_s) + period_s
        return True
