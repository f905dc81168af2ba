# SPDX-License-Identifier: Apache-2.0
"""Notices that this process stood still: it was stopped, swapped out, or its machine was suspended.

Whatever waited in queues meanwhile arrives as if it were new: DDS notes a message's reception only after the process
goes on, and reliable writers send what was lost again, for instance Fast DDS's up to 3 s later. And the silence of
peers is this process's own, as it neither asked nor listened.

A virtual machine that is paused as a whole stops its clocks as well, so nothing inside can notice. Stamped commands
are refused then as well if the stamps come from another machine.
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.subscription import Subscription

#: The time between two ticks.
TICK_S = 0.1
#: A longer gap is a stall: a busy machine delays a thread by a few hundredths of a second, seldom by two tenths.
STALL_S = 0.3
#: For how long after a stall no command is taken. What had queued up is read within some milliseconds.
SETTLING_S = 0.2
#: How many commands of a stream are refused at least. The executor takes one of a topic per round: the one that waited,
#: and one that the middleware, which gets its turn late as well, may have put in its place meanwhile.
SETTLING_ROUNDS = 2
#: For how long after a stall messages are judged by when they were sent: writers send again what was lost every 3 s
#: (Fast DDS) to 8 s (Cyclone DDS).
RESENDING_S = 10.0
LATE_TURN_S = 2.0  # after a stall, until each thread of a process on a busy machine has had its turn
#: How fast the least delay of a topic's messages is forgotten, in s per s: a sender's clock may be set.
_FORGETTING = 0.01

#: Goes on while the machine is suspended, on macOS by its plain name.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


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
        self._looks = threading.local()  # of each thread that asks whether to obey
        self._noticing = threading.Lock()
        self._thread: threading.Thread | None = None
        # Without a node nobody ticks, and then a gap between two questions says nothing.
        self._is_ticking = clock is not elapsed_s

    def running_s(self) -> float:
        """Return for how long the process has been running since its last stall; infinity without one.

        Whoever draws conclusions from a peer's silence waits until it has spoken and listened for that long again.
        """
        # The gap is judged by whoever comes first after it, and that need not be the thread that ticks.
        if not self._is_ticking:
            return math.inf
        with self._noticing:
            now_s = self._clock()
            if now_s - self._ticked_s > STALL_S:
                self._resumed_s = now_s
            self._ticked_s = now_s
            return now_s - self._resumed_s

    def stood_still_since(self, moment_s: float) -> bool:
        """Return whether the process has stood still since a time of `elapsed_s`."""
        return self.running_s() <= self._clock() - moment_s

    def silent_s(self, heard_s: float) -> float:
        """Return for how long a peer has been silent that was heard then (time.monotonic), while this process ran."""
        return min(time.monotonic() - heard_s, self.running_s())

    @property
    def is_settling(self) -> bool:
        """Whether the process has just stood still, so that what arrives may have been waiting: obey no command.

        On a busy machine a thread may get its turn long after the process goes on again, and what it had read before,
        or reads only then, is as old. So each thread settles from its own first look, if that comes in time.
        """
        running_s, now_s, looks = self.running_s(), self._clock(), self._looks
        is_first = now_s - running_s > getattr(looks, "looked_s", -math.inf)
        looks.looked_s = now_s
        if running_s > LATE_TURN_S:
            return False
        if is_first:
            looks.settled_s = now_s + SETTLING_S
        return bool(now_s < looks.settled_s)

    def start(self) -> None:
        """Tick in a thread of its own, from now on. May be called again, also in a forked process."""
        with self._noticing:
            if self._thread is None or not self._thread.is_alive():
                self._ticked_s, self._is_ticking = self._clock(), True
                self._thread = threading.Thread(target=self._tick, name="stall watch", daemon=True)
                self._thread.start()

    def _tick(self) -> None:
        while True:
            self.running_s()
            time.sleep(TICK_S)


#: This process's own. Every node starts it.
PROCESS = StallWatch()


class Resumptions:
    """Whether this process has stood still since a thread last looked. For that thread."""

    def __init__(self, watch: StallWatch = PROCESS) -> None:
        self._watch = watch
        self._looked_s = elapsed_s()

    def look(self) -> bool:
        """Return whether it has; wherever between two looks that was, in a wait or at work."""
        before_s, self._looked_s = self._looked_s, elapsed_s()
        return self._watch.stood_still_since(before_s)


class LoopSettling:
    """Whether what an asyncio loop reads may have waited while this process stood still. For the loop's thread.

    A thread may get its turn long after the process goes on again, and what waited is read only then. So settling
    begins at the first look of this thread, and a timer of the loop ends it: asyncio calls timers back after whatever
    was there to be read.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, watch: StallWatch = PROCESS) -> None:
        self._loop, self._watch = loop, watch
        self._looked_s = loop.time()
        self._end: asyncio.TimerHandle | None = None

    def look(self) -> bool:
        """Return whether what is being read may be old; to be called at least in each turn in which time is judged."""
        now_s = self._loop.time()
        if self._watch.running_s() <= now_s - self._looked_s:
            if self._end:
                self._end.cancel()
            self._end = self._loop.call_later(SETTLING_S, self._settled)
        self._looked_s = now_s
        return self._end is not None

    def _settled(self) -> None:
        self._end = None


class Arrivals:
    """Recognizes, after a stall, messages of one topic that were sent before or during it. For one thread.

    The stream counts again SETTLING_S and SETTLING_ROUNDS of the executor after the stall.
    """

    def __init__(self, watch: StallWatch = PROCESS) -> None:
        self._watch = watch
        self._resumptions = Resumptions(watch)
        self._rounds_left = 0
        self._arrived_s = elapsed_s()
        self._least_s: float | None = None  # of the differences between our clock, elapsed_s, and the senders'

    def refusal(self, sent_s: float | None) -> str | None:
        """Return why a command that has just arrived is refused, or None.

        Args:
            sent_s: when it was sent by its sender's clock, which may differ from ours; None if that is not known.
        """
        running_s = self._watch.running_s()
        if self._resumptions.look():
            self._rounds_left = SETTLING_ROUNDS
        if running_s < SETTLING_S or (self._rounds_left and running_s < LATE_TURN_S):
            self._rounds_left = max(0, self._rounds_left - 1)
            return f"this process stood still until {running_s:.2f} s ago, and it may have waited meanwhile."
        if sent_s is None:
            return None
        now_s = elapsed_s()
        least_s = self._least_s
        if least_s is None:  # the sender's clock is our own, as far as anybody knows
            least_s = now_s - time.time()
        least_s += _FORGETTING * (now_s - self._arrived_s)
        waited_s = now_s - sent_s - least_s
        if running_s < RESENDING_S and waited_s > STALL_S:
            return f"this process stood still until {running_s:.1f} s ago, and it was sent {waited_s:.1f} s ago."
        self._arrived_s, self._least_s = now_s, min(now_s - sent_s, least_s) if self._least_s else now_s - sent_s
        return None


def with_sending_time(callback: Callable[[Any, float | None], None]) -> Callable[..., None]:
    """Return a callback for a subscription that passes a message on with the time at which it was sent, if known."""
    if not hasattr(Subscription, "CallbackType"):  # Humble
        return lambda message: callback(message, None)
    return lambda message, info: callback(message, info["source_timestamp"] / 1e9 or None)
