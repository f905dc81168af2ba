# SPDX-License-Identifier: Apache-2.0
"""VirtualTime: a clock that jumps from event to event, and the processes that live by it.

Everything runs in one thread, ordered by time and then by the order of scheduling, so that a seed repeats a life
exactly. `installed` replaces the functions of `time`: what is tested reads the clock as always.
"""

import contextlib
import heapq
import itertools
import math
import random
import time
from collections import deque
from unittest import mock

from drone_bridge.net import connector
from drone_bridge.ros.node.stall_watch import PROCESS, StallWatch

#: Time at which a life begins, s, and the offset of the time of day.
START_S, EPOCH_S = 1000.0, 1_800_000_000.0


class BrokenInvariantError(Exception):
    """Broken invariant."""

    def __init__(self, row, at_s, sentence):
        super().__init__(f"{row} at {at_s:.2f} s: {sentence}")
        self.row, self.at_s = row, at_s


class VirtualTime:
    """Clock and events of one life. `rng` is its only source of chance."""

    def __init__(self, seed):
        self.seed, self.now_s, self.rng = seed, START_S, random.Random(seed)
        self._heap, self._order = [], itertools.count()
        self.is_over = False
        #: Shortest period of what is periodic, s: 0, or longer while nobody does anything and nothing moves.
        self.drowsy_s = 0.0
        #: Called by `finish`.
        self.at_end = []

    @property
    def lived_s(self):
        return self.now_s - START_S

    def at(self, time_s, call):
        """Call at a time. Calls of the same time keep their order."""
        heapq.heappush(self._heap, (max(time_s, self.now_s), next(self._order), call))

    def after(self, seconds, call):
        self.at(self.now_s + seconds, call)

    def every(self, period_s, call):
        """Call periodically, until the call returns False."""

        def again():
            if call() is not False:
                self.after(self.lazy(period_s), again)

        self.after(period_s, again)

    def lazy(self, seconds):
        """Return the time until something periodic, which is longer while nothing happens."""
        return max(seconds, self.drowsy_s)

    def run(self, seconds):
        """Advance the clock, with all events. A process that sleeps calls this from within an event."""
        end_s = self.now_s + seconds
        while self._heap and self._heap[0][0] <= end_s and not self.is_over:
            self.now_s, _, call = heapq.heappop(self._heap)
            call()
        self.now_s = max(self.now_s, end_s)

    def finish(self):
        """End the loops of the life. Nothing is judged any more."""
        self.is_over = True
        for call in self.at_end:
            call()

    def fault(self, row, sentence):
        """End the life by a broken invariant."""
        if self.is_over:
            return
        raise BrokenInvariantError(row, self.lived_s, sentence)

    @contextlib.contextmanager
    def installed(self):
        """Replace the clocks, and the randomness of retries, by this life's."""
        clocks = {
            "monotonic": lambda: self.now_s,
            "clock_gettime": lambda clock: self.now_s,
            "clock_gettime_ns": lambda clock: round(1e9 * self.now_s),
            "time": lambda: EPOCH_S + self.now_s,
            "time_ns": lambda: round(1e9 * (EPOCH_S + self.now_s)),
            "sleep": self.run,
        }
        jitter = mock.Mock(Random=lambda: random.Random(self.seed))
        with contextlib.ExitStack() as stack:
            for name, call in clocks.items():
                stack.enter_context(mock.patch.object(time, name, call))
            stack.enter_context(mock.patch.object(connector, "random", jitter))
            yield self


class Process:
    """Process of the life: what it does is delayed while it is stalled, and never done once it is killed.

    `PROCESS`, the watch that detects stalls, is the one of the process that runs. `on_stall` and `on_kill` are called
    when that happens.
    """

    #: The process that runs.
    current = None

    def __init__(self, life, name):
        self.life, self.name = life, name
        self.is_alive, self.stalled_until_s = True, -math.inf
        self.on_stall = self.on_kill = lambda: None
        self._waiting = deque()
        self._watch = StallWatch()
        self._watch._is_ticking = True  # as its thread does; each event that runs is a tick

    @property
    def is_stalled(self):
        return self.life.now_s < self.stalled_until_s

    def run(self, call):
        """Call now, after a stall, or never."""
        if not self.is_alive:
            return
        if self.is_stalled or self._waiting:
            self._waiting.append(call)
            return
        self._watch._ticks[0] = self.life.now_s
        self._call(call)

    def _call(self, call):
        before = Process.current, PROCESS.__dict__
        Process.current, PROCESS.__dict__ = self, self._watch.__dict__
        try:
            call()
        finally:
            Process.current, PROCESS.__dict__ = before

    def after(self, seconds, call):
        """Call in this process after a time."""
        self.life.after(seconds, lambda: self.run(call))

    def every(self, period_s, call):
        """Call periodically in this process, until `call` returns False or the process is killed. Skips missed calls.

        `period_s` may be a function.
        """
        period = period_s if callable(period_s) else lambda: period_s

        def again():
            if call() is not False:
                self.after(self.life.lazy(period()), again)

        self.after(period(), again)

    def stall(self, seconds):
        """Stop this process for a time, as by SIGSTOP, a debugger or swap."""
        if self.is_alive and not self.is_stalled:
            self.stalled_until_s = self.life.now_s + seconds
            self.life.at(self.stalled_until_s, self._resume)
            self.on_stall()

    def kill(self):
        """End at once, as by SIGKILL."""
        if self.is_alive:
            self.on_kill()
        self.end()

    def end(self):
        """End after an orderly shutdown."""
        self.is_alive = False
        self._waiting.clear()

    def _resume(self):
        if not self.is_alive:
            return
        self._call(self._watch.running_s)  # detects the gap since the last event
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            self.run(call)
