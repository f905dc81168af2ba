# SPDX-License-Identifier: Apache-2.0
"""LogLimiter, LogLimiters and OngoingLogLimiter: how much a peer, a controller or a condition may write to the log.

A LogLimiter admits a burst of lines, then one per second; LogLimiters are one for each kind of line. An
OngoingLogLimiter admits the line with which a condition begins, then others at growing intervals. The next line that is
admitted gives the number of those that were not. Any thread may call them: each has a lock of its own, and the caller
logs the line once it is released.
"""

import math
import re
import threading
import time

BURST = 5  # lines that may come at once, as a single fault often shows in more than one way
LINES_PER_S = 1.0  # in the long run

#: How many kinds of lines are told apart by their text, which a peer may have chosen; further ones share a limit.
MAX_KINDS = 16
_KIND_LENGTH = 40  # characters
_VALUES = re.compile(r"'[^']*'|[-+]?\d[\d.:]*")

FIRST_INTERVAL_S = 10.0
LONGEST_INTERVAL_S = 640.0
#: A condition that has not been met for this long has ended.
CONDITION_ENDS_AFTER_S = 30.0


class LogLimiter:
    """Decides which lines are logged, and counts suppressed ones. Thread-safe."""

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
        """Return whether a line may be logged now; with the lock held."""
        self._allowance = min(BURST, self._allowance + (now_s - self._updated_s) * LINES_PER_S)
        self._updated_s = now_s
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True


class LogLimiters:
    """A LogLimiter for each kind of line, so that a flood of one kind hides no other. Thread-safe."""

    def __init__(self) -> None:
        self._limiters: dict[str, LogLimiter] = {}
        self._kinds: set[str] = set()  # by their text

    def admit(self, line: str, kind: str = "") -> str | None:
        """Return the line to log, or None. Without a `kind`, lines that differ only in values are of one."""
        if not kind:
            kind = _VALUES.sub("#", line)[:_KIND_LENGTH]
            if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
                kind = ""
            self._kinds.add(kind)
        return self._limiters.setdefault(kind, LogLimiter()).admit(line)


class OngoingLogLimiter(LogLimiter):
    """Logs an ongoing condition when it begins, and then at growing intervals. Thread-safe.

    The beginnings of one that keeps beginning and ending are limited as other lines are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._met_s = -math.inf  # last
        self._due_s = self._interval_s = 0.0

    def end(self) -> None:
        """Note that the condition has ended, so that its next beginning is logged at once."""
        self._met_s = -math.inf

    def _is_due(self, now_s: float) -> bool:
        begins, self._met_s = now_s - self._met_s > CONDITION_ENDS_AFTER_S, now_s
        if not begins and now_s < self._due_s:
            return False
        self._interval_s = FIRST_INTERVAL_S if begins else min(2 * self._interval_s, LONGEST_INTERVAL_S)
        self._due_s = now_s + self._interval_s
        return super()._is_due(now_s) if begins else True
