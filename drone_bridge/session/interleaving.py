# SPDX-License-Identifier: Apache-2.0
"""Interleaving: notices that several publishers send on a topic, by the sequence numbers of its messages. Pure.

The numbers of one publisher rise. Those of several, which count on their own, fall again and again.
"""

import math

#: Longest time between two falls, s. A publisher that is restarted causes one.
GAP_S = 3.0


class Interleaving:
    """Sequence numbers of the messages of one topic, in the order of their arrival."""

    def __init__(self) -> None:
        self._last = -1
        self._fell_s, self._again_s = -math.inf, -math.inf

    def received(self, number: int, now_s: float) -> None:
        """Handle the number of a message."""
        if number <= self._last:
            if now_s - self._fell_s <= GAP_S:
                self._again_s = now_s
            self._fell_s = now_s
        self._last = number

    def lasts(self, now_s: float) -> bool:
        """Return whether several publishers send."""
        return now_s - self._again_s <= GAP_S
