# SPDX-License-Identifier: Apache-2.0
"""Progress of long-running work: one line that is redrawn on a terminal, a line per second in a log."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as RichProgress

LOG_PERIOD_S: Final = 1.0


class Progress:
    """Shows where something has got to, with a bar where its end is known."""

    def __init__(self, total: float | None = None, console: Console | None = None) -> None:
        """`total` is how much there is to do, in whatever `show` counts."""
        self._console = console or Console(highlight=False)
        columns: list[ProgressColumn] = [SpinnerColumn()]
        if total is not None:
            columns += [BarColumn(bar_width=24), MofNCompleteColumn()]
        text = TextColumn("{task.description}", markup=False)
        self._live = RichProgress(
            *columns, text, console=self._console, transient=True, disable=not self._console.is_terminal
        )
        self._task = self._live.add_task("", total=total)
        self._logged_at_s = -LOG_PERIOD_S

    def __enter__(self) -> Progress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, text: str, done: float | None = None) -> None:
        """Show this line now, `done` of the total behind it."""
        if self._console.is_terminal:
            self._live.update(self._task, description=text, completed=done)
        elif time.monotonic() - self._logged_at_s >= LOG_PERIOD_S:
            self._logged_at_s = time.monotonic()
            print(text, file=self._console.file, flush=True)
