# SPDX-License-Identifier: Apache-2.0
"""How long to wait before trying again."""

import random

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
JITTER = 0.25  # of the delay, to both sides: machines that lost one peer together do not come back together


class Backoff:
    """Delays that double from attempt to attempt, with jitter, from FIRST_DELAY_S to the longest."""

    def __init__(self, source: random.Random | None = None, longest_s: float = LONGEST_DELAY_S) -> None:
        self._random = source or random.Random()
        self._longest_s = longest_s
        self._delay_s = FIRST_DELAY_S

    def next_delay_s(self) -> float:
        """Return the delay before the next attempt, and increase the one after it."""
        # Cutting a jittered delay off at the bounds would give half of all machines the very same first delay.
        shortest_s = max((1 - JITTER) * self._delay_s, FIRST_DELAY_S)
        longest_s = min((1 + JITTER) * self._delay_s, self._longest_s)
        self._delay_s = min(2 * self._delay_s, self._longest_s)
        return self._random.uniform(shortest_s, longest_s)

    def reset(self) -> None:
        """Start over. To be called once the peer has proved useful, not merely reachable."""
        self._delay_s = FIRST_DELAY_S
