# SPDX-License-Identifier: Apache-2.0
"""A driver's keep-alives, and whether their answers allow driving. Times are passed in, in s."""

import math
from typing import Final

from drone_bridge.robot.codec import KeepAlive

KEEP_ALIVE_PERIOD_S: Final = 0.5
#: robotd puts its motors in safe mode for a keep-alive that is older by its own clock.
OLDEST_KEEP_ALIVE_S: Final = 2.0
SLOW_ROUND_TRIP_S: Final = 1.0
#: robotd reports it at each late keep-alive. It is over after two keep-alives without such a report.
SAFE_MODE_LASTS_S: Final = 3 * KEEP_ALIVE_PERIOD_S
#: An answer that is later than usual by so much shows that the robot has not dealt yet with what it was sent.
BACKLOG_S: Final = 0.3
#: After a keep-alive without an answer, and twice as long after each further one: nothing is piled up on a backlog, and
#: yet a robot that handles one packet per socket read is made to read on.
UNANSWERED_PERIOD_S: Final = 0.8
_MAX_IN_FLIGHT: Final = 100


class KeepAlives:
    """Sends keep-alives, and checks whether they come back, or reach the robot, in time to drive."""

    def __init__(self, now_s: float) -> None:
        self._sent_s = -math.inf  # the newest one
        self._in_flight: dict[int, float] = {}  # when each was sent, by its time in ms
        self._answered_s = now_s  # when the newest one that was answered was sent
        self._fastest_s = math.inf  # of all round trips
        self._safe_mode_s = -math.inf  # when the robot last said that it is in safe mode
        self._resumed_s = -math.inf  # when this program last went on after it stood still

    @property
    def due_s(self) -> float:
        """When the next one is due."""
        if not self._in_flight:
            return self._sent_s + KEEP_ALIVE_PERIOD_S
        return float(self._sent_s + UNANSWERED_PERIOD_S * 2 ** (len(self._in_flight) - 1))

    def make(self, now_s: float, clock_ms: int) -> KeepAlive:
        """Return the next keep-alive. `clock_ms` is the time of day."""
        self._sent_s = now_s
        while len(self._in_flight) >= _MAX_IN_FLIGHT:
            del self._in_flight[next(iter(self._in_flight))]
        self._in_flight[clock_ms] = now_s
        return KeepAlive(clock_ms)

    def answered(self, packet: KeepAlive, now_s: float) -> float | None:
        """Return the round trip, in s, or None if no such keep-alive is pending."""
        sent_s = self._in_flight.pop(packet.time_ms, None)
        if sent_s is None:
            return None
        self._answered_s = max(self._answered_s, sent_s)
        round_trip_s = now_s - max(sent_s, self._resumed_s)
        self._fastest_s = min(self._fastest_s, round_trip_s)
        return round_trip_s

    def resume(self, now_s: float) -> None:
        """Ask at once, and judge from now on: this program stood still, and neither asked nor listened."""
        self._resumed_s, self._sent_s = now_s, -math.inf

    @property
    def are_answered(self) -> bool:
        """Whether none waits for its answer."""
        return not self._in_flight

    def are_answered_since(self, time_s: float) -> bool:
        """Return whether one that was sent at this time or later was answered, and so all that went before it."""
        return self._answered_s >= time_s

    def show_backlog(self, now_s: float) -> bool:
        """Return whether an answer is late, so that whatever is sent now will wait at the robot as well."""
        usual_s = self._fastest_s if math.isfinite(self._fastest_s) else 0.0
        return any(now_s - sent_s > usual_s + BACKLOG_S for sent_s in self._in_flight.values())

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
