# SPDX-License-Identifier: Apache-2.0
"""Waiting for a number of steps to be done. For the link's thread."""

import math
import time
from collections.abc import Callable

#: Gets an empty text when the steps are done, else why that is not known.
OnDone = Callable[[str], None]


class Runs:
    """Who waits for Completed, which comes before or after the last step's data and even before RUN's own answer."""

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s`: without a step for so long, a run is taken to have been paused."""
        self._timeout_s = timeout_s
        self._count = 0
        self._waiting: list[OnDone] = []
        self._latest_s = -math.inf  # when the last step came, or should have

    def mark(self) -> int:
        """Return what to give to `wait`; to be called when RUN is sent."""
        return self._count

    def wait(self, mark: int, expected_s: float, on_done: OnDone) -> None:
        """Call `on_done` once a run's steps are done; `expected_s`: how long it may show no sign of life."""
        if self._count != mark:
            on_done("")
            return
        self._latest_s = max(self._latest_s, time.monotonic() + expected_s)
        self._waiting.append(on_done)

    def completed(self) -> None:
        """Note Completed."""
        self._count += 1
        self._finish("")

    def stepped(self, now_s: float) -> None:
        """Note a step."""
        self._latest_s = max(self._latest_s, now_s)

    @property
    def due_s(self) -> float:
        """When `tick` has something to do."""
        return self._latest_s + self._timeout_s if self._waiting else math.inf

    def tick(self, now_s: float) -> None:
        """Stop waiting for what does not go on."""
        if now_s >= self.due_s:
            self._finish(f"The simulation has made no step for {self._timeout_s:g} s.")

    def fail(self, reason: str) -> None:
        """Stop waiting."""
        self._finish(reason)

    def _finish(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(reason)
