# SPDX-License-Identifier: Apache-2.0
"""FlightWatch: whether the drone behind the GUI flies, from what that is known, and whether it still is. Pure.

A press of take_off lands a drone that flies and has any other take off, so what is known has to be true of now:

| known from | holds until | then |
|---|---|---|
| navdata | navdata does not say it any more, this process stood still, or the link was lost | others may have \
landed it, or fly it |
| a person's word, a press's effect | the GUI is gone: a packet was refused | nobody knows what others do, and the \
next GUI does not know that the drone flies |
| nothing: a new session | one of these | |
"""

import math
from collections.abc import Callable
from enum import Enum

from drone_bridge.dronegui.codec import FlightState


class Source(Enum):
    """What says whether the drone flies."""

    NAVDATA = "navdata"
    PERSON = "person"
    PRESS = "press"  # its expected effect


class FlightWatch:
    """What is known of the drone."""

    def __init__(self, navdata_timeout_s: Callable[[], float]) -> None:
        """`navdata_timeout_s` returns for how long navdata says how it is now."""
        self._navdata_timeout_s = navdata_timeout_s
        self._is_flying: bool | None = None
        #: What it is known from; None without a source.
        self.source: Source | None = None
        self._listening_since_s = -math.inf
        #: Whether the GUI is gone, or was, since anything was known.
        self.was_gui_gone = False
        #: Whether reset was pressed since there was navdata last.
        self.was_reset_pressed = False
        #: When there was navdata last, and navdata with a known state.
        self.heard_s = self.state_s = -math.inf
        #: The last known state in navdata, however old.
        self.state: FlightState | None = None

    def sees_drone(self, now_s: float) -> bool:
        """Return whether navdata gives the drone's state at present."""
        return now_s - self.state_s <= self._navdata_timeout_s()

    def hears_gui(self, now_s: float) -> bool:
        """Return whether navdata arrives at present, whatever its content."""
        return now_s - self.heard_s <= self._navdata_timeout_s()

    def is_flying(self, now_s: float) -> bool | None:
        """Return whether the drone flies; None where that is not known, or not any more."""
        is_outdated = self.source is Source.NAVDATA and not self.sees_drone(now_s)
        return None if is_outdated else self._is_flying

    def listened_s(self, now_s: float) -> float:
        """Return how long navdata has been listened for, since this process last stood still, or had no link."""
        return now_s - self._listening_since_s

    def resume(self, now_s: float) -> None:
        """Begin, or go on after this process stood still or had no link: what navdata showed before is not seen now."""
        self.heard_s = self.state_s = -math.inf
        self._listening_since_s = now_s

    def note(self, state: FlightState | None, now_s: float) -> None:
        """Take a state in navdata, None if missing or unknown."""
        self.was_reset_pressed = False  # if the GUI falls silent after this, it may be a new one
        if state is not None:
            self.state, self.state_s = state, now_s
            self.assume(state.is_airborne, Source.NAVDATA)
        self.heard_s = now_s

    def assume(self, is_flying: bool | None, source: Source) -> None:
        """Set whether the drone flies; None: it is not known any more."""
        self._is_flying, self.source, self.was_gui_gone = is_flying, source, False

    def refused(self, now_s: float) -> bool:
        """Note that nobody listened to a packet; return whether that ends what was known."""
        if self.source is None:
            return False
        was_known = self.is_flying(now_s) is not None
        self._is_flying, self.source, self.was_gui_gone, self.was_reset_pressed = None, None, True, False
        self.state, self.heard_s, self.state_s = None, -math.inf, -math.inf
        return was_known
