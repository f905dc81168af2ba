# SPDX-License-Identifier: Apache-2.0
"""FlightWatch: whether the drone behind the GUI flies, and for how long that is known. Pure.

A press of take_off lands a flying drone and makes any other take off, so the known state must be current:

| source | valid until |
|---|---|
| navdata | it stops reporting the state, this process was stalled, or the link was lost |
| a person's statement, the effect of a press | navdata, or the GUI is gone: a packet was refused |
| none: a new session, a press with an unknown effect | |
"""

import math
from collections.abc import Callable

from drone_bridge.dronegui.codec import FlightState


class FlightWatch:
    """Known state of the drone."""

    def __init__(self, navdata_timeout_s: Callable[[], float]) -> None:
        """`navdata_timeout_s` returns the timeout of navdata, s."""
        self._navdata_timeout_s = navdata_timeout_s
        self._assumed: bool | None = None  # whether it flies, without navdata
        self._is_fresh = False  # whether the GUI may not have requested navdata from its drone
        self._listening_since_s = -math.inf
        self._published: bool | None = None
        #: Time of the last navdata, and of the last navdata with a known state.
        self.received_s = self.state_s = -math.inf
        #: Last known state in navdata, of any age.
        self.state: FlightState | None = None

    def has_drone_state(self, now_s: float) -> bool:
        """Return whether navdata currently reports the drone's state."""
        return now_s - self.state_s <= self._navdata_timeout_s()

    def receives_navdata(self, now_s: float) -> bool:
        """Return whether navdata currently arrives, with any content."""
        return now_s - self.received_s <= self._navdata_timeout_s()

    def is_flying(self, now_s: float) -> bool | None:
        """Return whether the drone flies; None if unknown."""
        if self.state is not None and self.has_drone_state(now_s):
            return self.state.is_airborne
        return self._assumed

    def changed(self, now_s: float) -> bool | None:
        """Return whether the drone flies, if that is known and has changed."""
        is_flying = self.is_flying(now_s)
        if is_flying is None or is_flying is self._published:
            return None
        self._published = is_flying
        return is_flying

    def is_silent(self, now_s: float) -> bool:
        """Return whether no navdata has come for its timeout, of which none passes in a stall or without a link."""
        return now_s - max(self.received_s, self._listening_since_s) > self._navdata_timeout_s()

    def first_navdata_s(self) -> float:
        """Return the time until which navdata may still come on a new link, or after a stall."""
        return self._listening_since_s + self._navdata_timeout_s()

    def needs_bootstrap(self, now_s: float) -> bool:
        """Return whether the GUI may be a fresh one, by a person's statement that the drone is on the ground."""
        return self._is_fresh and not self.receives_navdata(now_s)

    def resume(self, now_s: float) -> None:
        """Start, or resume after a stall or loss of the link: earlier navdata does not count as current."""
        self.received_s = self.state_s = -math.inf
        self._listening_since_s = now_s

    def note(self, state: FlightState | None, now_s: float) -> None:
        """Record a state in navdata, None if missing or unknown."""
        self.received_s = now_s
        if state is not None:
            self.state, self.state_s = state, now_s
            self.assume(None)

    def assume(self, is_flying: bool | None, *, is_stated: bool = False) -> None:
        """Set whether the drone flies, for when navdata does not report it; None for unknown."""
        self._assumed, self._is_fresh = is_flying, is_stated and is_flying is False

    def forget(self) -> None:
        """Forget the state: the GUI is gone."""
        self.assume(None)
        self.received_s = self.state_s = -math.inf
