# SPDX-License-Identifier: Apache-2.0
"""StallWatch: detects stalls of this process: it was stopped or swapped out, or its machine was suspended.

A separate thread ticks, and each query counts as a tick. There is no lock: a thread that detects a gap since the last
tick records the stall before its own tick, so that no thread sees the tick without the stall. Each thread has its own
tick, and the latest one counts: a thread that is delayed between reading and storing the time causes no gap.

Messages that waited in queues during a stall arrive as if they were new: DDS records their reception only after the
process resumes. (Reliable writers retransmit lost messages up to 8 s later: command streams are therefore best-effort.)
The silence of peers is the process's own, since it neither sent nor received.

If a whole virtual machine is paused, its clocks stop too, and nothing inside can detect that. Stamped commands are then
refused nevertheless, if the stamps come from another machine.
"""

import math
import threading
import time
from collections.abc import Callable

from drone_bridge.net.clock import elapsed_s
from drone_bridge.session import session
from drone_bridge.session.stall_detector import StallDetector

#: Period of ticks, and gap that counts as a stall: the same as in a session's loop.
TICK_S, STALL_S = StallDetector.PERIOD_S, StallDetector.STALL_S
#: How long commands are refused after a stall. Queued messages are read within some milliseconds.
SETTLING_S = session.SETTLING_S
LATE_TURN_S = 2.0  # time after a stall until every thread has run, even on a busy machine


class StallWatch:
    """Measures the time since the last stall of the process. Thread-safe.

    Each query counts as a tick, so that a delay of a single thread is not mistaken for a stall.
    """

    def __init__(self, clock: Callable[[], float] = elapsed_s) -> None:
        """`clock` returns a time, s, that advances during a stall."""
        self.clock = clock
        self._ticks = {0: clock()}  # time of the last tick, by thread
        self._resumed_s = self._stalled_from_s = -math.inf
        self._looked_s = self._settled_s = -math.inf  # state of `is_settling`
        self._thread: threading.Thread | None = None
        # Without a node there are no ticks, and a gap between two queries means nothing.
        self._is_ticking = clock is not elapsed_s

    def running_s(self) -> float:
        """Return the time since the last stall, s; infinity without one.

        A check of a peer's silence is bounded by this time, in which the process has sent and received.
        """
        # The first query after a gap detects it, not necessarily the ticking thread.
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

    def stalled_since(self, moment_s: float) -> bool:
        """Return whether the process has stalled since a time of `clock`, by default `elapsed_s`."""
        return self.running_s() <= self.clock() - moment_s

    @property
    def is_settling(self) -> bool:
        """Whether the process has just resumed after a stall, so that requests may be stale. For the executor.

        On a busy machine the executor may run long after the process has resumed, and its messages are as stale then.
        The settling time therefore starts with the executor's first query, if that is within LATE_TURN_S.
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
        """Return how long a request that is handled now may have waited, s; 0 without a stall. For the executor.

        Successive stalls count as one, including the time between them.
        """
        return self.clock() - self._stalled_from_s if self.is_settling else 0.0

    def start(self) -> None:
        """Start the ticking thread. May be called again, also in a forked process."""
        if self._thread is None or not self._thread.is_alive():
            self._ticks[0], self._is_ticking = self.clock(), True
            self._thread = threading.Thread(target=self._tick, name="stall watch", daemon=True)
            self._thread.start()

    def _tick(self) -> None:
        while True:
            self.running_s()
            time.sleep(TICK_S)


#: Watch of this process. Every node starts it.
PROCESS = StallWatch()


class StaleStreamFilter:
    """Refuses commands of streams that may have waited during a stall of this process.

    Commands are followed again SETTLING_S after the first query that follows a stall, since a thread may run late.
    """

    def __init__(self, watch: StallWatch = PROCESS) -> None:
        self._watch = watch
        self._looked_s = watch.clock()
        self._settled_s = -math.inf

    def refusal(self, _: object = None) -> str | None:
        """Return why a new command is refused, whatever it is, or None."""
        now_s = self._watch.clock()  # first: the next query detects a stall right after it
        running_s = self._watch.running_s()
        if running_s <= now_s - self._looked_s:
            self._settled_s = now_s + SETTLING_S
        self._looked_s = now_s
        if running_s >= LATE_TURN_S or (now_s >= self._settled_s and running_s >= SETTLING_S):
            return None
        return f"this process was stalled until {running_s:.2f} s ago, and it may be stale."
