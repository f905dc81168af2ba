# SPDX-License-Identifier: Apache-2.0
"""ArrivalClock: when messages arrive, by a time that goes on where somebody sets the clock. A bag keeps their order."""

import time
from collections.abc import Callable

from drone_bridge.net.clock import STEADY_CLOCK

#: A simulation whose time goes back by more has begun again.
LARGEST_JITTER_NS = 1_000_000_000


def steady_ns() -> int:
    """Return the time of a clock that nobody sets, ns."""
    return time.clock_gettime_ns(STEADY_CLOCK)


class ArrivalClock:
    """Goes by a steady clock from the machine's time on, or by a simulation's, and on where another one begins."""

    def __init__(self, simulated_ns: Callable[[], int] | None = None) -> None:
        self._read = simulated_ns or steady_ns
        self._shift_ns = 0 if simulated_ns else time.time_ns() - steady_ns()
        self._newest_ns = 0

    def now_ns(self) -> int:
        """Return the time, ns."""
        now_ns = self._read()
        if self._newest_ns - now_ns > LARGEST_JITTER_NS:
            self._shift_ns += self._newest_ns - now_ns
            self._newest_ns = 0
        self._newest_ns = max(self._newest_ns, now_ns)
        return now_ns + self._shift_ns

    def of_message_ns(self, received_ns: int, last_ns: int) -> int:
        """Return when the next message of a topic arrived, ns, which is not before the one that was taken before it.

        What a reliable publisher sends again arrives after later messages, and is taken before them; by the
        middleware's times, readers of the bag would get it after them.

        Args:
            received_ns: when the middleware received it, by the machine's clock, which may have been set since; 0 where
                that is not known.
            last_ns: when the message before it arrived.
        """
        waited_ns = max(0, time.time_ns() - received_ns) if received_ns else 0
        return max(last_ns, self.now_ns() - waited_ns)
