# SPDX-License-Identifier: Apache-2.0
"""Alternation: notices commands that alternate with zero, as of two programs that command in turn. Pure."""

import math

#: Longest interruption of motion, or of a stop, that counts, s. A person does not release and press that fast.
SHORT_S = 0.2
#: Longest time between two of them, and their duration, s.
GAP_S, LASTS_S = 1.1, 2.0


class Alternation:
    """State of the commands to one vehicle, on any topic. Written by one thread at a time, and read by any."""

    def __init__(self) -> None:
        self._was_zero: bool | None = None
        self._changed_s = self._since_s = self._interrupted_s = -math.inf

    def received(self, is_zero: bool, now_s: float) -> None:
        """Handle a command that is followed."""
        if is_zero == self._was_zero:
            return
        if self._was_zero is not None and now_s - self._changed_s <= SHORT_S:
            if now_s - self._interrupted_s > GAP_S:
                self._since_s = now_s
            self._interrupted_s = now_s
        self._was_zero, self._changed_s = is_zero, now_s

    def lasts(self, now_s: float) -> bool:
        """Return whether commands have been alternating with zero for LASTS_S, until now."""
        return now_s - self._interrupted_s <= GAP_S and now_s - self._since_s >= LASTS_S
