# SPDX-License-Identifier: Apache-2.0
"""How demonstrations tell where they have got to."""

import io

from rich.console import Console

from drone_bridge.tools.demo import progress
from drone_bridge.tools.demo.progress import Progress


def test_a_log_gets_a_line_per_second(monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    log = io.StringIO()
    with Progress(console=Console(file=log)) as shown:
        for number in range(50):
            shown.show(f"line {number} [of 50]")
            now_s += 0.25
    assert log.getvalue().splitlines() == [f"line {number} [of 50]" for number in range(0, 50, 4)]


def test_a_terminal_gets_one_line_that_is_redrawn():
    terminal = io.StringIO()
    with Progress(total=50, console=Console(file=terminal, force_terminal=True, width=80)) as shown:
        for number in range(50):
            shown.show(f"line {number} [of 50]", number + 1)
    assert terminal.getvalue().count("\n") <= 2
    assert "line 49 [of 50]" in terminal.getvalue()
    assert "50/50" in terminal.getvalue()
