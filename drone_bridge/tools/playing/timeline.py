# SPDX-License-Identifier: Apache-2.0
"""When each moment of a bag is due on a clock: a rate, pauses and jumps. No clock of its own."""

from dataclasses import dataclass

_NANOSECONDS = 1e9


@dataclass(slots=True)
class Timeline:
    """Maps times of a bag (ns) to those of a steady clock (s), and back. Starts paused at `position_ns`."""

    position_ns: int
    """Where it is paused, or was when it last started to run."""
    rate: float = 1.0
    """Seconds of the bag per second."""
    _running_since_s: float | None = None

    @property
    def is_paused(self) -> bool:
        return self._running_since_s is None

    def now_ns(self, now_s: float) -> int:
        if self._running_since_s is None:
            return self.position_ns
        return self.position_ns + round((now_s - self._running_since_s) * self.rate * _NANOSECONDS)

    def wait_s(self, time_ns: int, now_s: float) -> float:
        """Return how long until a time of the bag is due: negative when overdue, infinite while paused."""
        if self._running_since_s is None:
            return float("inf")
        return self._running_since_s + (time_ns - self.position_ns) / _NANOSECONDS / self.rate - now_s

    def run(self, now_s: float) -> None:
        """Resume from where it was paused."""
        if self._running_since_s is None:
            self._running_since_s = now_s

    def pause(self, now_s: float) -> None:
        self.position_ns, self._running_since_s = self.now_ns(now_s), None

    def jump(self, position_ns: int, now_s: float) -> None:
        """Go to another time, without starting or pausing."""
        self.position_ns = position_ns
        if self._running_since_s is not None:
            self._running_since_s = now_s
