# SPDX-License-Identifier: Apache-2.0
"""Verdict of a step: prints its figures, and remembers which vehicle moved that should not have or did not stop."""

from __future__ import annotations

#: The ROS domains of steps. Tests have those below; the ports of higher ones are in Linux's ephemeral range.
DOMAINS = range(61, 102)

# What `main(short)` of a step returns.
OK = 0
MOVED = 1  # a vehicle moved that should not have, or did not stop
CRASHED = 2
NOT_HERE = 77


class NotHereError(Exception):
    """A step can't be done on this machine; the text says what is missing."""


class Verdict:
    """What a step has found so far."""

    def __init__(self) -> None:
        self._moved = 0

    @property
    def status(self) -> int:
        """What `main` returns."""
        return MOVED if self._moved else OK

    def figure(self, text: str) -> None:
        """Print what was measured, in words. The last one stands in the table for the whole step."""
        print(text, flush=True)

    def stopped(self, is_so: bool, sentence: str) -> None:
        """Note whether a vehicle stopped, or stood, as it had to; the sentence says how it did not."""
        if not is_so:
            self._moved += 1
            print(f"MOVED: {sentence}", flush=True)
