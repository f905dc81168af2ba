# SPDX-License-Identifier: Apache-2.0
"""How demonstrations tell where they have got to."""

import io
import sys

from drone_bridge.tools.demo import progress
from drone_bridge.tools.demo.progress import Progress


class Terminal(io.StringIO):
    """Standard output that people look at."""

    def isatty(self):
        return True


def test_a_log_gets_a_line_per_second(monkeypatch, capsys):
    now_s = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    with Progress() as shown:
        for number in range(50):
            shown.show(f"line {number}")
            now_s += 0.25
    assert capsys.readouterr().out.splitlines() == [f"line {number}" for number in range(0, 50, 4)]


def test_a_terminal_gets_one_line_that_is_redrawn(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with Progress() as shown:
        for number in range(50):
            shown.show(f"line {number}")
    assert "\n" not in terminal.getvalue()
    assert "line 49" in terminal.getvalue()
