# SPDX-License-Identifier: Apache-2.0
"""FollowWatch: detects by navdata whether the drone follows our packets. Pure.

The GUI obeys the higher numbers: after one packet of another controller it ignores ours, without a report. But a drone
that hovers as commanded reports HOVERING, and one that is steered FLYING. Its report for axes close to zero is unknown.

| observation | conclusion |
|---|---|
| in this flight the drone has followed us into both states, and has been in the other one for `patience_s` since it \
was in ours, or since we changed ours | it does not follow |
| anything else: no navdata, another state, a drone that reports one state for both, late navdata | none |
"""

import math

from drone_bridge.dronegui.codec import Controls, FlightState

#: States of a drone in flight, by whether it hovers.
FOLLOWING = {FlightState.HOVERING: True, FlightState.FLYING: False}
#: Time of a constant command after which agreement shows that the drone follows, s.
SETTLED_S = 0.5
#: Maximum time counted for a gap between two reports, s.
LONGEST_GAP_S = 0.5
#: Share above which an axis steers the drone.
STEERS = 0.05


class FollowWatch:
    """Compares the commanded and the reported kind of flight: hover, or not."""

    def __init__(self) -> None:
        self._is_hover: bool | None = None  # in the last command
        self._is_judged = False  # whether the last packet is unambiguous
        self._sent_s = math.inf  # start time of the current command
        self._agreed: set[bool] = set()  # states into which the drone has followed us, in this flight
        self._shown_s = math.inf  # time of the last state
        self._apart_s = 0.0  # time that the drone has been in the other state

    def restart(self) -> None:
        """Forget the flight, after a stall or a restart of the packets."""
        self._agreed, self._apart_s = set(), 0.0

    def sent(self, controls: Controls, now_s: float) -> None:
        """Record a packet."""
        axes = controls.roll, controls.pitch, controls.yaw, controls.gas
        self._is_judged = controls.hover or max(map(abs, axes)) > STEERS
        if self._is_judged and controls.hover is not self._is_hover:
            self._is_hover, self._sent_s, self._apart_s = controls.hover, now_s, 0.0

    def shown(self, state: FlightState | None, now_s: float) -> None:
        """Record the state in navdata."""
        elapsed_s, self._shown_s = max(now_s - self._shown_s, 0.0), now_s
        if state not in FOLLOWING:
            self.restart()
        elif FOLLOWING[state] is self._is_hover:
            self._apart_s = 0.0
            if self._is_judged and now_s - self._sent_s >= SETTLED_S:
                self._agreed.add(FOLLOWING[state])
        elif self._is_judged:
            self._apart_s += min(elapsed_s, LONGEST_GAP_S)

    def is_overruled(self, patience_s: float) -> bool:
        """Return whether the drone does not follow."""
        return len(self._agreed) == len(FOLLOWING) and self._apart_s >= patience_s
