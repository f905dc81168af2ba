# SPDX-License-Identifier: Apache-2.0
"""KeepAlives: a driver's keep-alives, and whether their answers allow driving."""

import math
import re
from collections import deque

from drone_bridge.robot import codec

KEEP_ALIVE_PERIOD_S = 0.1  # like the protocol's own driver
#: Age of the newest answered keep-alive from which the robot is stopped. robotd stops by itself for one of 2 s.
ANSWER_TIMEOUT_S = 1.0
#: Age of the newest answered keep-alive from which further ones are sent slowly, see PacketSender.
LATE_S = 0.5
#: Safe mode ends after this time without a report: robotd reports each late keep-alive.
SAFE_MODE_LASTS_S = 1.5
#: robotd's log line, which it also sends to drivers: time, subsystem and event.
_SAFE_MODE = re.compile(r"^(?:\[[^\]]*\] )?\{(.*)\} safe mode$", re.DOTALL)
_MAX_IN_FLIGHT = 1000


class KeepAlives:
    """Factory of keep-alives, and monitor of their answers."""

    def __init__(self, now_s: float) -> None:
        self.due_s = now_s  # of the next one
        #: When the newest answered one was sent; before the first answer, and after a stall, the start of waiting.
        self.answered_s = now_s
        self._in_flight: deque[tuple[int, float]] = deque(maxlen=_MAX_IN_FLIGHT)  # time of day as sent, and time
        self._safe_mode_s = -math.inf  # time of the robot's last report of safe mode

    def make(self, now_s: float, clock_ms: int) -> codec.KeepAlive:
        """Return the next keep-alive. `clock_ms` is the time of day."""
        self.due_s = now_s + KEEP_ALIVE_PERIOD_S
        self._in_flight.append((clock_ms, now_s))
        return codec.KeepAlive(clock_ms)

    def answered(self, packet: codec.KeepAlive) -> float | None:
        """Return when an answered keep-alive was sent, or None if no such one is pending."""
        found = next((each for each in self._in_flight if each[0] == packet.time_ms), None)
        if found is None:
            return None
        self._in_flight.remove(found)
        self.answered_s = max(self.answered_s, found[1])
        return found[1]

    def resume(self, now_s: float) -> None:
        """Send the next one at once, and restart the judgement after a stall of this process."""
        self.due_s = self.answered_s = now_s

    def are_late(self, now_s: float) -> bool:
        """Return whether answers are late: packets may have accumulated at the robot."""
        return now_s - self.answered_s > LATE_S

    def note_log(self, text: str, subsystems: set[str], now_s: float) -> None:
        """Record that the robot has stopped the motors of one of these subsystems, from its log."""
        if (found := _SAFE_MODE.search(text)) and found[1] in subsystems:
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
        if now_s - self.answered_s > ANSWER_TIMEOUT_S:
            return f"The robot has not answered keep-alives for {ANSWER_TIMEOUT_S:g} s: it may still be moving."
        return None
