# SPDX-License-Identifier: Apache-2.0
"""Whether the drone flies: as navdata shows, or, where none comes, as is assumed from what was pressed."""

import math
import threading
import time
from collections.abc import Callable, Container

from rclpy.task import Future

from drone_bridge.protocols.dronegui import FlightState


class Sighting:
    """Waits for navdata to show one of some states. Awaited in the executor, ended by the link's thread."""

    def __init__(self, wanted: Container[FlightState | None], deadline_s: float) -> None:
        #: Done, in the executor, when the wait is over.
        self.over: Future[None] = Future()
        self.wanted = wanted
        self.deadline_s = deadline_s
        self.was_seen = False
        self.is_over = False


class FlightWatch:
    """Keeps the newest state of the drone, and what is believed without one. For any thread."""

    def __init__(self, on_sighting_over: Callable[[], None]) -> None:
        """`on_sighting_over` is called in the thread that ends a sighting; the executor then calls `finish`."""
        self._on_sighting_over = on_sighting_over
        self._lock = threading.Lock()
        self._sightings: list[Sighting] = []
        self._state: FlightState | None = None
        self._heard_s = self._told_s = self._listening_since_s = -math.inf
        self._is_flying: bool | None = False
        self._is_open = False

    @property
    def is_flying(self) -> bool | None:
        """Whether the drone flies, as far as is known; None after a press of which nobody saw what came."""
        return self._is_flying

    @property
    def state(self) -> FlightState | None:
        """The newest known state that navdata has told, however old it is."""
        return self._state

    @property
    def silence_s(self) -> float:
        """For how long no navdata has come; infinite if none ever has."""
        return time.monotonic() - self._heard_s

    @property
    def state_age_s(self) -> float:
        """For how long no navdata has told a known state; infinite if none ever has."""
        return time.monotonic() - self._told_s

    @property
    def listened_s(self) -> float:
        """For how long navdata has been listened for."""
        return time.monotonic() - self._listening_since_s

    def listen(self) -> None:
        """Start over: the GUI may be another one, though the drone flies as long as nothing says otherwise."""
        with self._lock:
            self._state, self._heard_s, self._told_s = None, -math.inf, -math.inf
            self._listening_since_s = time.monotonic()

    def note(self, state: FlightState | None) -> None:
        """Take what navdata shows; None for a state that is missing or unknown."""
        with self._lock:
            self._heard_s = time.monotonic()
            if state is not None:
                self._state, self._told_s = state, self._heard_s
                self._is_flying = state.is_airborne
            for sighting in self._sightings:
                if not sighting.is_over and state in sighting.wanted:
                    sighting.was_seen = sighting.is_over = True
        self.end_overdue()

    def assume(self, is_flying: bool | None) -> None:
        """Take what somebody says, or what a press is likely to have done."""
        with self._lock:
            self._is_flying = is_flying

    def look_for(self, wanted: Container[FlightState | None], timeout_s: float) -> Sighting:
        """Begin to wait for one of these states, if there is a link by which they can come."""
        sighting = Sighting(wanted, time.monotonic() + timeout_s)
        with self._lock:
            self._sightings.append(sighting)
            sighting.is_over = not self._is_open
        if sighting.is_over:
            self._on_sighting_over()
        return sighting

    def end_overdue(self) -> None:
        """End the sightings whose time is over."""
        with self._lock:
            for sighting in self._sightings:
                sighting.is_over |= time.monotonic() >= sighting.deadline_s
            are_over = any(sighting.is_over for sighting in self._sightings)
        if are_over:
            self._on_sighting_over()

    def open(self) -> None:
        """Allow sightings: from now on there is a link."""
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """End all sightings, as nothing more will be seen."""
        with self._lock:
            self._is_open = False
            for sighting in self._sightings:
                sighting.is_over = True
        self._on_sighting_over()

    def finish(self) -> None:
        """Resume whoever awaits a sighting that is over. For the executor."""
        with self._lock:
            over = [sighting for sighting in self._sightings if sighting.is_over]
            self._sightings = [sighting for sighting in self._sightings if not sighting.is_over]
        for sighting in over:
            sighting.over.set_result(None)
