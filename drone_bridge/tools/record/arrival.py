# SPDX-License-Identifier: Apache-2.0
"""ArrivalClock: monotonic arrival times of messages, unaffected by clock steps. They preserve the order in a bag."""

import time
from collections.abc import Callable

from drone_bridge.net.clock import STEADY_CLOCK

#: A larger step back of simulated time means a restarted simulation.
LARGEST_JITTER_NS = 1_000_000_000


def steady_ns() -> int:
    """Return the time of a steady clock, ns."""
    return time.clock_gettime_ns(STEADY_CLOCK)


class ArrivalClock:
    """Steady clock that starts at the system time, or simulated time that continues after a restart."""

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
        """Return the arrival time of the next message of a topic, ns, not before the previous one.

        A message that a reliable publisher retransmits is received after later messages, but delivered before them.
        With the middleware's times, readers of the bag would get it after them.

        Args:
            received_ns: reception time in the middleware, by the system clock, which may have been set since; 0 if
                unknown.
            last_ns: arrival time of the previous message.
        """
        waited_ns = max(0, time.time_ns() - received_ns) if received_ns else 0
        return max(last_ns, self.now_ns() - waited_ns)
