# SPDX-License-Identifier: Apache-2.0
"""Verdict of a step: prints its figures, and records vehicles that moved without permission or did not stop."""

from __future__ import annotations

#: ROS domains of steps. Tests use lower ones. The ports of higher ones are in Linux's ephemeral range.
DOMAINS = range(61, 102)

# Return values of a step's `main(short)`.
OK = 0
MOVED = 1  # a vehicle moved without permission, or did not stop
CRASHED = 2
NOT_HERE = 77


class NotHereError(Exception):
    """A step is not possible on this machine. The text names the missing part."""


class Verdict:
    """Results of a step so far."""

    def __init__(self) -> None:
        self._moved = 0

    @property
    def status(self) -> int:
        """Return value of `main`."""
        return MOVED if self._moved else OK

    def figure(self, text: str) -> None:
        """Print a result as text. The last one represents the step in the table."""
        print(text, flush=True)

    def stopped(self, is_so: bool, sentence: str) -> None:
        """Record whether a vehicle stopped, or stood, as required; the sentence describes a failure."""
        if not is_so:
            self._moved += 1
            print(f"MOVED: {sentence}", flush=True)
