# SPDX-License-Identifier: Apache-2.0
"""LogLimiter, LogLimiters and OngoingLogLimiter: throttling of log lines.

A LogLimiter admits a burst of lines, then one per second. LogLimiters has one for each kind of line. An
OngoingLogLimiter admits a line at the beginning of a condition, then others at growing intervals. The next line
contains the number of suppressed ones. All are thread-safe: each has its own lock, and the caller logs the line after
its release.
"""

import math
import re
import threading
import time

BURST = 5  # lines at once, since a single fault often causes several
LINES_PER_S = 1.0  # in the long run

#: Number of kinds that are distinguished by text, which a peer may control. Further kinds share a limiter.
MAX_KINDS = 16
_KIND_LENGTH = 40  # characters
_VALUES = re.compile(r"'[^']*'|[-+]?\d[\d.:]*")

FIRST_INTERVAL_S = 10.0
LONGEST_INTERVAL_S = 640.0
#: A condition that was not reported for this long has ended.
CONDITION_ENDS_AFTER_S = 30.0


class LogLimiter:
    """Token bucket for log lines, which counts suppressed ones. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allowance = float(BURST)
        self._updated_s = time.monotonic()
        self._suppressed = 0

    def admit(self, line: str) -> str | None:
        """Return the line to log, or None."""
        with self._lock:
            if not self._is_due(time.monotonic()):
                self._suppressed += 1
                return None
            number, self._suppressed = self._suppressed, 0
        return f"{line} ({number} line{'' if number == 1 else 's'} suppressed)" if number else line

    def _is_due(self, now_s: float) -> bool:
        """Return whether a line may be logged now. The caller holds the lock."""
        self._allowance = min(BURST, self._allowance + (now_s - self._updated_s) * LINES_PER_S)
        self._updated_s = now_s
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True


class LogLimiters:
    """LogLimiter for each kind of line, so that a flood of one kind hides no other. Thread-safe."""

    def __init__(self) -> None:
        self._limiters: dict[str, LogLimiter] = {}
        self._kinds: set[str] = set()  # distinguished by text

    def admit(self, line: str, kind: str = "") -> str | None:
        """Return the line to log, or None. Without `kind`, lines that differ only in values are of one kind."""
        if not kind:
            kind = _VALUES.sub("#", line)[:_KIND_LENGTH]
            if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
                kind = ""
            self._kinds.add(kind)
        return self._limiters.setdefault(kind, LogLimiter()).admit(line)


class OngoingLogLimiter(LogLimiter):
    """Limiter of an ongoing condition: a line at its beginning, then at growing intervals. Thread-safe.

    The beginnings of a condition that flaps are throttled like other lines.
    """

    def __init__(self) -> None:
        super().__init__()
        self._met_s = -math.inf  # time of the last report
        self._due_s = self._interval_s = 0.0

    def end(self) -> None:
        """End the condition, so that its next beginning is logged at once."""
        self._met_s = -math.inf

    def _is_due(self, now_s: float) -> bool:
        begins, self._met_s = now_s - self._met_s > CONDITION_ENDS_AFTER_S, now_s
        if not begins and now_s < self._due_s:
            return False
        self._interval_s = FIRST_INTERVAL_S if begins else min(2 * self._interval_s, LONGEST_INTERVAL_S)
        self._due_s = now_s + self._interval_s
        return super()._is_due(now_s) if begins else True
