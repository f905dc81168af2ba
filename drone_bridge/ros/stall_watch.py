# SPDX-License-Identifier: Apache-2.0
"""StallWatch: notices that this process stood still: it was stopped, swapped out, or its machine was suspended.

A thread of its own ticks, and each look counts as a tick. Nothing is locked: whoever sees the gap since the last tick
notes the stall before its own tick, so that nobody sees the one without the other. Each thread has a tick of its own,
and the latest counts: one that was delayed between reading the time and noting it makes no gap.

Whatever waited in queues meanwhile arrives as if it were new: DDS notes a message's reception only after the process
goes on. (Reliable writers send again what was lost, up to 8 s later: so streams of commands are taken best-effort.) And
the silence of peers is this process's own, as it neither sent nor listened.

A virtual machine that is paused as a whole stops its clocks as well, so nothing inside can notice. Stamped commands
are refused then as well if the stamps come from another machine.
"""

import math
import threading
import time
from collections.abc import Callable

from drone_bridge.net.clock import elapsed_s
from drone_bridge.session import session
from drone_bridge.session.stall_detector import StallDetector

#: The time between two ticks, and the gap that is a stall: as a session's loop has them.
TICK_S, STALL_S = StallDetector.PERIOD_S, StallDetector.STALL_S
#: For how long after a stall no command is taken. What had queued up is read within some milliseconds.
SETTLING_S = session.SETTLING_S
LATE_TURN_S = 2.0  # after a stall, until each thread of a process on a busy machine has had its turn


class StallWatch:
    """Measures for how long a process has been running since it last stood still. Thread-safe.

    A caller counts as a sign of life, so that one thread that does not get its turn is not taken for a stall.
    """

    def __init__(self, clock: Callable[[], float] = elapsed_s) -> None:
        """`clock` returns a time in s that goes on while the process stands still."""
        self.clock = clock
        self._ticks = {0: clock()}  # by thread
        self._resumed_s = self._stalled_from_s = -math.inf
        self._looked_s = self._settled_s = -math.inf  # of `is_settling`
        self._thread: threading.Thread | None = None
        # Without a node nobody ticks, and then a gap between two questions says nothing.
        self._is_ticking = clock is not elapsed_s

    def running_s(self) -> float:
        """Return for how long the process has been running since its last stall; infinity without one.

        A judge of a peer's silence waits until it has spoken and listened for that long again.
        """
        # The gap is judged by the first caller after it, and that need not be the thread that ticks.
        if not self._is_ticking:
            return math.inf
        now_s = self.clock()
        ticked_s = max(tuple(self._ticks.values()))
        if now_s - ticked_s > STALL_S:
            if ticked_s - self._resumed_s > LATE_TURN_S:
                self._stalled_from_s = ticked_s
            self._resumed_s = now_s
        self._ticks[threading.get_ident()] = now_s
        return now_s - self._resumed_s

    def stood_still_since(self, moment_s: float) -> bool:
        """Return whether the process has stood still since a time of `clock`, by default `elapsed_s`."""
        return self.running_s() <= self.clock() - moment_s

    @property
    def is_settling(self) -> bool:
        """Whether the process has just stood still, so that a request may have been waiting. For the executor.

        On a busy machine that may get its turn long after the process goes on again, and what it had read before, or
        reads only then, is as old. So it settles from its own first look, if that comes in time.
        """
        running_s, now_s = self.running_s(), self.clock()
        is_first = now_s - running_s > self._looked_s
        self._looked_s = now_s
        if running_s > LATE_TURN_S:
            return False
        if is_first:
            self._settled_s = now_s + SETTLING_S
        return now_s < self._settled_s

    def waited_s(self) -> float:
        """Return for how long a request that is taken now may have waited; 0 without a stall. For the executor.

        Stalls that follow each other count as one, with the time between them.
        """
        return self.clock() - self._stalled_from_s if self.is_settling else 0.0

    def start(self) -> None:
        """Tick in a thread of its own, from now on. May be called again, also in a forked process."""
        if self._thread is None or not self._thread.is_alive():
            self._ticks[0], self._is_ticking = self.clock(), True
            self._thread = threading.Thread(target=self._tick, name="stall watch", daemon=True)
            self._thread.start()

    def _tick(self) -> None:
        while True:
            self.running_s()
            time.sleep(TICK_S)


#: This process's own. Every node starts it.
PROCESS = StallWatch()


class StreamSettling:
    """Refuses commands of streams that may have waited while this process was stalled.

    They count again SETTLING_S after the first look that follows a stall: a thread may get its turn late.
    """

    def __init__(self, watch: StallWatch = PROCESS) -> None:
        self._watch = watch
        self._looked_s = watch.clock()
        self._settled_s = -math.inf

    def refusal(self) -> str | None:
        """Return why a command that has just arrived is refused, or None."""
        now_s = self._watch.clock()  # first: a stall right after it is noticed by the next look
        running_s = self._watch.running_s()
        if running_s <= now_s - self._looked_s:
            self._settled_s = now_s + SETTLING_S
        self._looked_s = now_s
        if running_s >= LATE_TURN_S or (now_s >= self._settled_s and running_s >= SETTLING_S):
            return None
        return f"this process was stalled until {running_s:.2f} s ago, and it may be stale."
