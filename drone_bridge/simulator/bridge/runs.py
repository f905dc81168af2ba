# SPDX-License-Identifier: Apache-2.0
"""Waiting for the end of a run. For the link's thread."""

import math
import time
from collections.abc import Callable

#: Gets an empty text when the steps are done, else why that is not known.
OnDone = Callable[[str], None]


class Runs:
    """Waits for Completed, which may come before the last step's data and even before the answer to RUN."""

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s`: a run without a step for so long counts as paused."""
        self._timeout_s = timeout_s
        self._count = 0
        self._waiting: list[OnDone] = []
        self._latest_s = -math.inf  # when the last step came, or should have

    def mark(self) -> int:
        """Return the mark for `wait`; to be called when RUN is sent."""
        return self._count

    def wait(self, mark: int, expected_s: float, on_done: OnDone) -> None:
        """Call `on_done` when a run is complete; `expected_s` is how long it may go without a sign of life."""
        if self._count != mark:
            on_done("")
            return
        self._latest_s = max(self._latest_s, time.monotonic() + expected_s)
        self._waiting.append(on_done)

    def completed(self) -> None:
        self._count += 1
        self._finish("")

    def stepped(self, now_s: float) -> None:
        self._latest_s = max(self._latest_s, now_s)

    @property
    def are_awaited(self) -> bool:
        return bool(self._waiting)

    @property
    def due_s(self) -> float:
        """When `tick` is due."""
        return self._latest_s + self._timeout_s if self._waiting else math.inf

    def tick(self, now_s: float) -> None:
        """Fail runs that do not progress."""
        if now_s >= self.due_s:
            self._finish(f"The simulation has made no step for {self._timeout_s:g} s.")

    def fail(self, reason: str) -> None:
        """Fail all waiting calls."""
        self._finish(reason)

    def _finish(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(reason)
