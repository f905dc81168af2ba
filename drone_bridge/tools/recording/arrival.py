# SPDX-License-Identifier: Apache-2.0
"""When messages arrived, by a clock that may be set while they do: a bag keeps the order of arrival."""

import time

from drone_bridge.net.clock import STEADY_CLOCK

#: The note in a bag that says when the recorder's clock was set, as a clause.
CLOCK_NOTE = "clock"
#: Smaller steps are left in: an order that is wrong by so little mixes no flights.
SMALLEST_STEP_NS = 1_000_000_000
MAX_STEPS = 100


def steady_ns() -> int:
    """Return the time of a clock that nobody sets, ns."""
    return time.clock_gettime_ns(STEADY_CLOCK)


class ArrivalClock:
    """Times of a clock without its steps: where somebody sets it, they go on as if nobody had."""

    def __init__(self, now_ns: int, steady_ns: int | None) -> None:
        """Begin with what the clock shows, ns, and what a steady one shows.

        Without a steady one, it may go forward by any amount, as that of a simulation.
        """
        self.began_ns = now_ns
        #: When the clock was set, ns since the beginning, and by how much, ns.
        self.steps: list[tuple[int, int]] = []
        self._shift_ns = 0
        self._now_ns, self._steady_ns = now_ns, steady_ns

    def look(self, now_ns: int, steady_ns: int | None) -> str:
        """Note what both clocks show. Returns a sentence about a step since the last look, or nothing."""
        self.began_ns = self.began_ns or now_ns  # a simulation's clock shows 0 until it is heard
        step_ns = now_ns - self._now_ns
        if self._steady_ns is not None and steady_ns is not None:
            step_ns -= steady_ns - self._steady_ns
        else:
            step_ns = min(0, step_ns)
        self._now_ns, self._steady_ns = now_ns, steady_ns
        if abs(step_ns) < SMALLEST_STEP_NS:
            return ""
        self._shift_ns -= step_ns
        if len(self.steps) == MAX_STEPS:
            return ""
        self.steps.append((self.of(now_ns) - self.began_ns, step_ns))
        return f"The clock was {_described(*self.steps[-1])}; the bag goes on as if it were not."

    def of(self, time_ns: int) -> int:
        """Return a time that the clock shows now, or showed since it was last set, without the steps, ns."""
        return time_ns + self._shift_ns

    def describe_steps(self) -> str:
        """Return all steps as a clause, empty if there were none."""
        return ", ".join(_described(*each) for each in self.steps)


def _described(after_ns: int, step_ns: int) -> str:
    direction = "forward" if step_ns > 0 else "back"
    return f"set {direction} by {abs(step_ns) / 1e9:.1f} s after {after_ns / 1e9:.1f} s"


class ArrivalTimes:
    """The times at which the messages of one topic arrived, each not before the one that was taken before it.

    What a reliable publisher sends again arrives after messages that were published later, and is taken before them;
    by the middleware's times, readers of the bag would get it after them.
    """

    def __init__(self, clock: ArrivalClock) -> None:
        self._clock = clock
        self._last_ns = clock.began_ns

    def in_order_ns(self, received_ns: int, now_ns: int) -> int:
        """Return the time of the message that is taken next, at `now_ns`, which the middleware received then.

        It may have come before the clock was set: so none is earlier than the one before it, or later than now.
        """
        self._last_ns = max(self._last_ns, self._clock.of(min(received_ns, now_ns)))
        return self._last_ns
