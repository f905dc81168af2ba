# SPDX-License-Identifier: Apache-2.0
"""KeepAlives: a driver's keep-alives, and whether their answers allow driving."""

import math
from collections import deque
from dataclasses import dataclass

from drone_bridge.robot import codec

KEEP_ALIVE_PERIOD_S = 0.1  # like the protocol's own driver
#: Age, by its own clock, of a keep-alive for which robotd enters safe mode.
OLDEST_KEEP_ALIVE_S = 2.0
SLOW_ROUND_TRIP_S = 1.0
#: Safe mode ends after this time without a report: robotd reports each late keep-alive.
SAFE_MODE_LASTS_S = 1.5
#: Delay of an answer, beyond the typical one, that shows that the robot has not handled earlier packets.
LATE_S = 0.1
#: Window of the fastest answer, which is the typical one: a network may become slower permanently.
USUAL_FOR_S = 10.0
_MAX_IN_FLIGHT = 1000


@dataclass(slots=True, eq=False)
class _Times:
    """Times of an unanswered keep-alive."""

    time_ms: int
    """Time as sent. Not unique, since the time of day can be set back."""
    begun_s: float
    sent_s: float = math.inf  # of its last byte


class KeepAlives:
    """Factory of keep-alives, and monitor of their answers."""

    def __init__(self, now_s: float) -> None:
        self.begun_s = -math.inf  # start of the newest one
        self._in_flight: deque[_Times] = deque(maxlen=_MAX_IN_FLIGHT)  # oldest first
        self._answered_s = now_s  # start of the newest one that was answered
        self._fastest: deque[tuple[float, float]] = deque()  # round trips, time; none is followed by a faster one
        self._safe_mode_s = -math.inf  # time of the robot's last report of safe mode
        self._resumed_s = -math.inf  # end of this process's last stall

    def make(self, now_s: float, clock_ms: int) -> codec.KeepAlive:
        """Return the next keep-alive. `clock_ms` is the time of day."""
        self.begun_s = now_s
        self._in_flight.append(_Times(clock_ms, now_s))
        return codec.KeepAlive(clock_ms)

    def note_sent(self, packet: codec.KeepAlive, now_s: float) -> None:
        """Record that the last byte of a keep-alive was sent."""
        for times in reversed(self._in_flight):
            if times.time_ms == packet.time_ms:
                times.sent_s = now_s
                return

    def answered(self, packet: codec.KeepAlive, now_s: float) -> float | None:
        """Return the round trip, in s, or None if no such keep-alive is pending."""
        times = next((each for each in self._in_flight if each.time_ms == packet.time_ms), None)
        if times is None:
            return None
        self._in_flight.remove(times)
        self._answered_s = max(self._answered_s, times.begun_s)
        round_trip_s = now_s - max(min(times.sent_s, now_s), self._resumed_s)
        if times.sent_s >= self._resumed_s:  # otherwise the answer may have waited here during the stall
            self._note_round_trip(round_trip_s, now_s)
        return round_trip_s

    def _note_round_trip(self, round_trip_s: float, now_s: float) -> None:
        while self._fastest and self._fastest[-1][0] >= round_trip_s:
            self._fastest.pop()
        self._fastest.append((round_trip_s, now_s))
        while now_s - self._fastest[0][1] > USUAL_FOR_S:
            self._fastest.popleft()

    def resume(self, now_s: float) -> None:
        """Send the next one at once, and restart the judgement after a stall of this process."""
        self._resumed_s, self.begun_s = now_s, -math.inf

    def are_answered_since(self, time_s: float) -> bool:
        """Return whether a keep-alive started at this time or later was answered, and thus all packets before it."""
        return self._answered_s >= time_s

    @property
    def typical_s(self) -> float:
        """Typical delay of an answer without congestion. 0 while unknown."""
        return self._fastest[0][0] if self._fastest else 0.0

    def are_late(self, now_s: float) -> bool:
        """Return whether an answer is late, so that packets sent now would also be delayed at the robot.

        A keep-alive older than an answered one is ignored, since the robot has handled it.
        """
        allowed_s, answered_s = self.typical_s + LATE_S, self._answered_s
        return any(times.begun_s >= answered_s and now_s - times.sent_s > allowed_s for times in self._in_flight)

    def note_safe_mode(self, now_s: float) -> None:
        """Record that the robot has stopped its motors."""
        self._safe_mode_s = now_s

    def standstill_reason(self, now_s: float) -> str | None:
        """Return the reason why the motors must not be driven now, or None.

        A robot that has stopped for late keep-alives would start again with the next update.
        """
        if now_s - self._safe_mode_s < SAFE_MODE_LASTS_S:
            return (
                "The robot is in safe mode: keep-alives are stale by its clock when they arrive. Compare the clocks of "
                "both machines, and check the network's latency."
            )
        if now_s - max(self._answered_s, self._resumed_s) > OLDEST_KEEP_ALIVE_S:
            return f"The robot has not answered keep-alives for {OLDEST_KEEP_ALIVE_S:g} s."
        return None
