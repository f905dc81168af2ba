# SPDX-License-Identifier: Apache-2.0
"""Notices that this process stood still: it was stopped, swapped out, or its machine was suspended.

Whatever waited in queues meanwhile arrives as if it were new: DDS stamps a message when it is read. And the silence of
peers is this process's own, as it neither asked nor listened.

A virtual machine that is paused as a whole stops its clocks as well, so nothing inside can notice. Stamped commands
are refused then as well if the stamps come from another machine.
"""

import math
import threading
import time
from collections.abc import Callable

#: The time between two ticks.
TICK_S = 0.1
#: A longer gap is a stall: a busy machine delays a thread by a few hundredths of a second, seldom by two tenths.
STALL_S = 0.3
#: For how long after a stall no command is taken. What had queued up is read within some milliseconds.
SETTLING_S = 0.2
#: Why a command is refused meanwhile.
AFTER_A_STALL = f"this process has just stood still for more than {STALL_S:g} s, and it may have waited as long."

# Of Linux, which counts suspension; elsewhere some systems' monotonic clocks do.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_s() -> float:
    """Return the time of a clock that is never set, and that goes on while the machine is suspended."""
    return time.clock_gettime(_CLOCK)


class StallWatch:
    """Measures for how long a process has been running since it last stood still. Thread-safe.

    Whoever asks counts as a sign of life, so that one thread that does not get its turn is not taken for a stall.
    """

    def __init__(self, clock: Callable[[], float] = elapsed_s) -> None:
        """`clock` returns a time in s that goes on while the process stands still."""
        self._clock = clock
        self._ticked_s = clock()
        self._resumed_s = -math.inf
        self._noticing = threading.Lock()
        self._thread: threading.Thread | None = None

    def running_s(self) -> float:
        """Return for how long the process has been running since its last stall; infinity without one."""
        # The gap is judged by whoever comes first after it, and that need not be the thread that ticks.
        with self._noticing:
            now_s = self._clock()
            if now_s - self._ticked_s > STALL_S:
                self._resumed_s = now_s
            self._ticked_s = now_s
            return now_s - self._resumed_s

    @property
    def is_settling(self) -> bool:
        """Whether the process has just stood still, so that what arrives may have been waiting: obey no command."""
        return self.running_s() < SETTLING_S

    def start(self) -> None:
        """Tick in a thread of its own, from now on. May be called again, also in a forked process."""
        with self._noticing:
            if self._thread is None or not self._thread.is_alive():
                self._ticked_s = self._clock()
                self._thread = threading.Thread(target=self._tick, name="stall watch", daemon=True)
                self._thread.start()

    def _tick(self) -> None:
        while True:
            self.running_s()
            time.sleep(TICK_S)


#: This process's own. Every node starts it.
PROCESS = StallWatch()
