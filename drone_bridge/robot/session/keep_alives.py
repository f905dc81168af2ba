# SPDX-License-Identifier: Apache-2.0
"""KeepAlives: those of a driver, and whether their answers allow driving."""

import math
from collections import deque
from dataclasses import dataclass

from drone_bridge.robot import codec

KEEP_ALIVE_PERIOD_S = 0.1  # as the protocol's own driver
#: robotd puts its motors in safe mode for a keep-alive that is older by its own clock.
OLDEST_KEEP_ALIVE_S = 2.0
SLOW_ROUND_TRIP_S = 1.0
#: robotd reports it at each late keep-alive. It is over when there was no such report for so long.
SAFE_MODE_LASTS_S = 1.5
#: An answer that is later than usual by so much shows that the robot has not dealt yet with what it was sent.
LATE_S = 0.1
#: What is usual is the fastest answer of so long: a network may become slower for good.
USUAL_FOR_S = 10.0
_MAX_IN_FLIGHT = 1000


@dataclass(slots=True, eq=False)
class _Times:
    """Of a keep-alive without an answer."""

    time_ms: int
    """As sent. Several may have the same one, as the time of day can be set back."""
    begun_s: float
    sent_s: float = math.inf  # its last byte


class KeepAlives:
    """Makes keep-alives, and checks whether they come back, or reach the robot, in time to drive."""

    def __init__(self, now_s: float) -> None:
        self.begun_s = -math.inf  # the newest one
        self._in_flight: deque[_Times] = deque(maxlen=_MAX_IN_FLIGHT)  # the oldest first
        self._answered_s = now_s  # when the newest one that was answered was begun
        self._fastest: deque[tuple[float, float]] = deque()  # round trips with their times: no faster one came later
        self._safe_mode_s = -math.inf  # when the robot last reported safe mode
        self._resumed_s = -math.inf  # when this program last went on after it stood still

    def make(self, now_s: float, clock_ms: int) -> codec.KeepAlive:
        """Return the next keep-alive. `clock_ms` is the time of day."""
        self.begun_s = now_s
        self._in_flight.append(_Times(clock_ms, now_s))
        return codec.KeepAlive(clock_ms)

    def note_sent(self, packet: codec.KeepAlive, now_s: float) -> None:
        """Note that the last byte of a keep-alive was sent."""
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
        if times.sent_s >= self._resumed_s:  # else it may have waited here already
            self._note_round_trip(round_trip_s, now_s)
        return round_trip_s

    def _note_round_trip(self, round_trip_s: float, now_s: float) -> None:
        while self._fastest and self._fastest[-1][0] >= round_trip_s:
            self._fastest.pop()
        self._fastest.append((round_trip_s, now_s))
        while now_s - self._fastest[0][1] > USUAL_FOR_S:
            self._fastest.popleft()

    def resume(self, now_s: float) -> None:
        """Ask at once, and judge from now on: this program stood still, and neither sent nor listened."""
        self._resumed_s, self.begun_s = now_s, -math.inf

    def are_answered_since(self, time_s: float) -> bool:
        """Return whether one that was begun at this time or later was answered, and so all that went before it."""
        return self._answered_s >= time_s

    @property
    def usual_s(self) -> float:
        """How long an answer takes when nothing holds it up; 0 while that is unknown."""
        return self._fastest[0][0] if self._fastest else 0.0

    def are_late(self, now_s: float) -> bool:
        """Return whether an answer is late, so that whatever is sent now will wait at the robot as well.

        A keep-alive that is older than one that was answered does not count: the robot has dealt with it.
        """
        allowed_s = self.usual_s + LATE_S
        newer = (times for times in self._in_flight if times.begun_s >= self._answered_s)
        return any(now_s - times.sent_s > allowed_s for times in newer)

    def note_safe_mode(self, now_s: float) -> None:
        """Note that the robot has stopped its motors."""
        self._safe_mode_s = now_s

    def standstill_reason(self, now_s: float) -> str | None:
        """Return why the motors must not be driven now, or None.

        A robot that stops for late keep-alives would start again with the next update.
        """
        if now_s - self._safe_mode_s < SAFE_MODE_LASTS_S:
            return (
                "The robot is in safe mode, as keep-alives are too old by its clock when they arrive: compare the "
                "clocks of both machines, and look at the network's delay."
            )
        if now_s - max(self._answered_s, self._resumed_s) > OLDEST_KEEP_ALIVE_S:
            return f"The robot has answered no keep-alive of the last {OLDEST_KEEP_ALIVE_S:g} s."
        return None
