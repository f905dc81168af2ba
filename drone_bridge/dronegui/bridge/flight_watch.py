# SPDX-License-Identifier: Apache-2.0
"""Whether the drone flies: from navdata, from a person, or assumed from presses; unknown until one of them says so."""

import math
import threading
import time
from collections.abc import Callable, Container
from enum import Enum

from rclpy.task import Future

from drone_bridge.dronegui.codec import FlightState
from drone_bridge.ros.stall_watch import PROCESS


class Source(Enum):
    """What says whether the drone flies."""

    NAVDATA = "navdata"
    PERSON = "person"
    PRESS = "press"  # its expected effect


class StateWait:
    """A wait for navdata with one of some states. Awaited in the executor, ended by the link's thread."""

    def __init__(self, wanted: Container[FlightState | None], deadline_s: float) -> None:
        #: Done, in the executor, when the wait is over.
        self.over: Future[None] = Future()
        self.wanted = wanted
        self.deadline_s = deadline_s
        self.was_seen = False
        self.is_over = False


class FlightWatch:
    """The newest state of the drone, and whether it is assumed to fly. Thread-safe."""

    def __init__(self, on_wait_over: Callable[[], None]) -> None:
        """`on_wait_over` is called in the thread that ends a wait; the executor then calls `finish`."""
        self._on_wait_over = on_wait_over
        self._lock = threading.Lock()
        self._waits: list[StateWait] = []
        self._state: FlightState | None = None
        self._heard_s = self._state_s = self._listening_since_s = -math.inf
        self._is_flying: bool | None = None
        self._source: Source | None = None
        self._is_open = False

    @property
    def is_flying(self) -> bool | None:
        """Whether the drone flies, as far as known; None without a source, or after a press with an unknown effect."""
        return self._is_flying

    @property
    def source(self) -> Source | None:
        """What `is_flying` is known from."""
        return self._source

    @property
    def state(self) -> FlightState | None:
        """The last known state in navdata, however old."""
        return self._state

    @property
    def silence_s(self) -> float:
        """Time since the last navdata; infinite if there was none."""
        return time.monotonic() - self._heard_s

    @property
    def state_age_s(self) -> float:
        """Time since navdata with a known state; infinite if there was none."""
        return time.monotonic() - self._state_s

    @property
    def listened_s(self) -> float:
        """How long navdata has been listened for, since this process last stood still."""
        return min(time.monotonic() - self._listening_since_s, PROCESS.running_s())

    def listen(self) -> None:
        """Start over, as the GUI may be another one; whether the drone flies is kept."""
        with self._lock:
            self._state, self._heard_s, self._state_s = None, -math.inf, -math.inf
            self._listening_since_s = time.monotonic()

    def note(self, state: FlightState | None) -> None:
        """Handle a state in navdata, None if missing or unknown."""
        with self._lock:
            self._heard_s = time.monotonic()
            if state is not None:
                self._state, self._state_s = state, self._heard_s
                self._is_flying, self._source = state.is_airborne, Source.NAVDATA
            for wait in self._waits:
                if not wait.is_over and state in wait.wanted:
                    wait.was_seen = wait.is_over = True
        self.end_overdue()

    def assume(self, is_flying: bool | None, source: Source) -> None:
        """Set whether the drone flies; None: it is not known any more."""
        with self._lock:
            self._is_flying, self._source = is_flying, source

    def begin(self, is_flying: bool) -> None:
        """Set what a person says of the start of the process; no effect once anything else was known or assumed."""
        with self._lock:
            if self._source is None:
                self._is_flying, self._source = is_flying, Source.PERSON

    def wait_for(self, wanted: Container[FlightState | None], timeout_s: float) -> StateWait:
        """Begin to wait for one of these states, if there is a link."""
        wait = StateWait(wanted, time.monotonic() + timeout_s)
        with self._lock:
            self._waits.append(wait)
            wait.is_over = not self._is_open
        if wait.is_over:
            self._on_wait_over()
        return wait

    def end_overdue(self) -> None:
        """End waits that have timed out."""
        with self._lock:
            for wait in self._waits:
                wait.is_over |= time.monotonic() >= wait.deadline_s
            are_over = any(wait.is_over for wait in self._waits)
        if are_over:
            self._on_wait_over()

    def open(self) -> None:
        """Allow waits, as there is a link."""
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """End all waits, as there is no link any more."""
        with self._lock:
            self._is_open = False
            for wait in self._waits:
                wait.is_over = True
        self._on_wait_over()

    def finish(self) -> None:
        """Complete the futures of waits that are over. For the executor."""
        with self._lock:
            over = [wait for wait in self._waits if wait.is_over]
            self._waits = [wait for wait in self._waits if not wait.is_over]
        for wait in over:
            wait.over.set_result(None)
