# SPDX-License-Identifier: Apache-2.0
"""LogLimiter and ConditionLogLimiter: how much a peer, a controller or a lasting condition may write to the log.

A LogLimiter admits a burst of lines, then one per second. A ConditionLogLimiter admits the line with which a condition
begins, then others at growing intervals. The next line that is admitted gives the number of those that were not. Any
thread may call them: each has a lock of its own, and the caller logs the line once it is released.
"""

import threading
import time
from collections import defaultdict
from dataclasses import dataclass

BURST = 5  # lines that may come at once, as a single fault often shows in more than one way
LINES_PER_S = 1.0  # in the long run

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
            now_s = time.monotonic()
            self._allowance = min(BURST, self._allowance + (now_s - self._updated_s) * LINES_PER_S)
            self._updated_s = now_s
            if self._allowance < 1:
                self._suppressed += 1
                return None
            self._allowance -= 1
            suppressed, self._suppressed = self._suppressed, 0
        return _with_suppressed(line, suppressed)


@dataclass(slots=True)
class _Condition:
    """An ongoing condition."""

    due_s: float  # when it is logged next
    interval_s: float
    met_s: float  # when it was met last
    suppressed: int = 0


class ConditionLogLimiter:
    """Logs an ongoing condition when it begins, and then at growing intervals. Thread-safe.

    One that keeps beginning and ending is limited as other lines are, separately for each condition.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conditions: dict[str, _Condition] = {}
        self._beginnings: defaultdict[str, LogLimiter] = defaultdict(LogLimiter)

    def admit(self, condition: str, line: str) -> str | None:
        """Return the line to log about a condition, or None.

        Args:
            condition: its name, one of a few: each is remembered.
            line: what to say about it now.
        """
        with self._lock:
            now_s = time.monotonic()
            known = self._conditions.get(condition)
            if known is None or now_s - known.met_s > CONDITION_ENDS_AFTER_S:
                self._conditions[condition] = _Condition(now_s + FIRST_INTERVAL_S, FIRST_INTERVAL_S, now_s)
                return self._beginnings[condition].admit(line)
            known.met_s = now_s
            if now_s < known.due_s:
                known.suppressed += 1
                return None
            known.interval_s = min(2 * known.interval_s, LONGEST_INTERVAL_S)
            known.due_s = now_s + known.interval_s
            suppressed, known.suppressed = known.suppressed, 0
        return _with_suppressed(line, suppressed)

    def end(self, condition: str) -> None:
        """Note that a condition has ended, so that its next beginning is logged at once."""
        with self._lock:
            self._conditions.pop(condition, None)


def _with_suppressed(line: str, number: int) -> str:
    if not number:
        return line
    return f"{line} ({number} line{'' if number == 1 else 's'} suppressed)"
