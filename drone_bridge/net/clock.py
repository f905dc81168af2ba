# SPDX-License-Identifier: Apache-2.0
"""Clock: time source of links and sessions, never set or adjusted. Tests use a fake one."""

import time

#: Counts the time for which the machine is suspended. On macOS the plain CLOCK_MONOTONIC does so.
STEADY_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_s() -> float:
    """Return the time, s, of a clock that is never set and that counts the time of a suspended machine."""
    return time.clock_gettime(STEADY_CLOCK)


def time_of_day_ms() -> int:
    """Return the time of day, ms since 1970. It jumps when the system clock is set."""
    return time.time_ns() // 1_000_000


class Clock:
    """Steady clock as an object, for dependency injection."""

    def now_s(self) -> float:
        """Return the time, s."""
        return time.clock_gettime(STEADY_CLOCK)

    def sleep(self, duration_s: float) -> None:
        """Block the calling thread for a duration, s."""
        time.sleep(duration_s)
