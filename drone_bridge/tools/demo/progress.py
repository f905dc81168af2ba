# SPDX-License-Identifier: Apache-2.0
"""Where something long has got to: a line that is written over on a terminal, at most a line per second in a log."""

import shutil
import sys
import time

LOG_PERIOD_S = 1.0


class Progress:
    """Shows one line after the other; leaving the `with` block clears a terminal's."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._logged_at_s = -LOG_PERIOD_S
        self._logged = ""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", flush=True)

    def show(self, text: str) -> None:
        """Show this line now."""
        if self._is_terminal:
            print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif text != self._logged and time.monotonic() - self._logged_at_s >= LOG_PERIOD_S:
            self._logged, self._logged_at_s = text, time.monotonic()
            print(text, flush=True)
