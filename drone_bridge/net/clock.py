# SPDX-License-Identifier: Apache-2.0
"""Clock: the time of links and sessions, by a clock that is never set. Tests have one of their own."""

import time

#: Goes on while the machine is suspended, on macOS by its plain name.
STEADY_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_s() -> float:
    """Return the time, s, of a clock that is never set, and that goes on while the machine is suspended."""
    return time.clock_gettime(STEADY_CLOCK)


def time_of_day_ms() -> int:
    """Return the time of day, ms since 1970, which may be set."""
    return time.time_ns() // 1_000_000


class Clock:
    """That clock, as an object to hand in."""

    def now_s(self) -> float:
        """Return the time, s."""
        return time.clock_gettime(STEADY_CLOCK)

    def sleep(self, duration_s: float) -> None:
        """Let time pass."""
        time.sleep(duration_s)
