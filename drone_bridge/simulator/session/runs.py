# SPDX-License-Identifier: Apache-2.0
"""Runs: who waits for the end of a run. Pure, with the time handed in."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class _Run:
    mark: int  # how many had been completed when it began
    latest_s: float  # when a step was expected at the latest
    finish: Callable[[str], None]


class Runs:
    """In one conversation. COMPLETED may come even before the answer to RUN."""

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s` is how long a simulation that is waited for may make no step."""
        self.completed = 0
        self._timeout_s = timeout_s
        self._waiting: list[_Run] = []

    def wait(self, mark: int, expected_s: float, finish: Callable[[str], None]) -> None:
        """Have `finish` called with why the end is not known, or an empty text.

        `mark` is how many had been completed when it began, and `expected_s` when a step comes at the latest.
        """
        self._waiting.append(_Run(mark, expected_s, finish))

    def resume(self, now_s: float) -> None:
        """Wait anew for a step: while this process stood still it has seen none."""
        for run in self._waiting:
            run.latest_s = max(run.latest_s, now_s)

    def end(self, reason: str) -> None:
        """Tell all who wait that they wait in vain."""
        waiting, self._waiting = self._waiting, []
        for run in waiting:
            run.finish("" if run.mark != self.completed else reason)

    def turn(self, now_s: float, stepped_s: float) -> float:
        """Finish what is complete or overdue, with the time of the last step; return when to call this again."""
        for run in tuple(self._waiting):
            is_complete = run.mark != self.completed
            if is_complete or now_s >= max(run.latest_s, stepped_s) + self._timeout_s:
                self._waiting.remove(run)
                run.finish("" if is_complete else f"The simulation has made no step for {self._timeout_s:g} s.")
        return min((max(run.latest_s, stepped_s) + self._timeout_s for run in self._waiting), default=math.inf)
