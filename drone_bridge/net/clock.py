# SPDX-License-Identifier: Apache-2.0
"""Clock: the time of links and sessions. Tests have one of their own."""

import time

#: Goes on while the machine is suspended, on macOS by its plain name.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """A clock that is never set, and that goes on while the machine is suspended."""

    def now_s(self) -> float:
        """Return the time, s."""
        return time.clock_gettime(_CLOCK)

    def sleep(self, duration_s: float) -> None:
        """Let time pass."""
        time.sleep(duration_s)
