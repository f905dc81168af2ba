# SPDX-License-Identifier: Apache-2.0
"""Progress: a line with the progress of a task, shown only on a terminal."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

PERIOD_S = 0.2
_CLEAR = "\r\x1b[K"

T = TypeVar("T")


class Progress:
    """Progress line of one task. It is on standard error, so that output on stdout can be piped."""

    def __init__(self, work: str, total: float) -> None:
        """`work` names the task, such as "reading". `total` is its size, above 0."""
        self._work, self._total = work, total
        self._is_shown = sys.stderr.isatty() and total > 0
        self._due_s = 0.0

    def show(self, done: float) -> None:
        """Show the progress, at most once per PERIOD_S. `done` is the part of `total` that is done."""
        if self._is_shown and (now_s := time.monotonic()) >= self._due_s:
            self._due_s = now_s + PERIOD_S
            print(
                f"{_CLEAR}{self._work}: {min(100.0, 100 * done / self._total):.0f} %",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def end(self) -> None:
        """Clear the line."""
        if self._is_shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def counted(items: Iterable[T], work: str, total: int) -> Iterator[T]:
    """Yield items, and show the progress by their number."""
    progress = Progress(work, total)
    try:
        for done, item in enumerate(items):
            progress.show(done)
            yield item
    finally:
        progress.end()
