# SPDX-License-Identifier: Apache-2.0
"""Keeps a peer, or a controller, from filling a log."""

import threading
import time
from typing import Final

BURST: Final = 5  # lines that may come at once, as a single fault often shows in more than one way
LINES_PER_S: Final = 1.0  # in the long run


class LogLimiter:
    """Decides which lines are logged, and tells how many were not. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allowance = float(BURST)
        self._updated_s = time.monotonic()
        self._left_out = 0

    def admit(self, line: str) -> str | None:
        """Return the line as it is to be logged, or None."""
        with self._lock:
            now_s = time.monotonic()
            self._allowance = min(BURST, self._allowance + (now_s - self._updated_s) * LINES_PER_S)
            self._updated_s = now_s
            if self._allowance < 1:
                self._left_out += 1
                return None
            self._allowance -= 1
            left_out, self._left_out = self._left_out, 0
        if not left_out:
            return line
        return f"{line} ({'1 line before it was' if left_out == 1 else f'{left_out} lines before it were'} left out.)"
