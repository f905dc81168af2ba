# SPDX-License-Identifier: Apache-2.0
"""FlightWatch: whether the drone behind the GUI flies, the source of that, and its validity. Pure.

A press of take_off lands a flying drone and makes any other take off, so the known state must be current:

| source | valid until | reason |
|---|---|---|
| navdata | navdata stops reporting it, this process was stalled, or the link was lost | others may have \
landed it, or started it |
| a person's statement, the effect of a press | the GUI is gone: a packet was refused | other controllers may act, and \
the next GUI does not know that the drone flies |
| nothing: a new session | one of these sources | |
"""

import math
from collections.abc import Callable
from enum import Enum

from drone_bridge.dronegui.codec import FlightState


class FlyingSource(Enum):
    """Source of the state of flight."""

    NAVDATA = "navdata"
    PERSON = "person"
    PRESS = "press"  # its expected effect


class FlightWatch:
    """Known state of the drone."""

    def __init__(self, navdata_timeout_s: Callable[[], float]) -> None:
        """`navdata_timeout_s` returns the timeout of navdata, s."""
        self._navdata_timeout_s = navdata_timeout_s
        self._is_flying: bool | None = None
        #: Source of the state; None without one.
        self.source: FlyingSource | None = None
        self._listening_since_s = -math.inf
        #: Whether the GUI was disconnected since the state became known.
        self.was_gui_gone = False
        #: Whether reset was pressed since the last navdata.
        self.was_reset_pressed = False
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
        is_outdated = self.source is FlyingSource.NAVDATA and not self.has_drone_state(now_s)
        return None if is_outdated else self._is_flying

    def listening_s(self, now_s: float) -> float:
        """Return how long we have been listening for navdata, since the last stall or loss of the link."""
        return now_s - self._listening_since_s

    def resume(self, now_s: float) -> None:
        """Start, or resume after a stall or loss of the link: earlier navdata does not count as current."""
        self.received_s = self.state_s = -math.inf
        self._listening_since_s = now_s

    def note(self, state: FlightState | None, now_s: float) -> None:
        """Record a state in navdata, None if missing or unknown."""
        self.was_reset_pressed = False  # if the GUI is silent after this, it may be a new one
        if state is not None:
            self.state, self.state_s = state, now_s
            self.assume(state.is_airborne, FlyingSource.NAVDATA)
        self.received_s = now_s

    def assume(self, is_flying: bool | None, source: FlyingSource) -> None:
        """Set whether the drone flies; None for unknown."""
        self._is_flying, self.source, self.was_gui_gone = is_flying, source, False

    def refused(self, now_s: float) -> bool:
        """Record that the port was closed for a packet; return whether the state becomes unknown."""
        if self.source is None:
            return False
        was_known = self.is_flying(now_s) is not None
        self._is_flying, self.source, self.was_gui_gone, self.was_reset_pressed = None, None, True, False
        self.state, self.received_s, self.state_s = None, -math.inf, -math.inf
        return was_known
