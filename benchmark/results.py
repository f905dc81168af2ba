# SPDX-License-Identifier: Apache-2.0
"""The table of all campaigns in a page, which each of them writes its rows into."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- campaign -->\n", "<!-- end of campaign -->"


class Row(NamedTuple):
    """What happened, and how often it went wrong."""

    what: str
    command: str
    how_often: str
    failed: int
    slowest: str  # until all was well

    def __str__(self) -> str:
        return f"{self.beginning} {self.how_often} | {self.failed} | {self.slowest} |"

    @property
    def beginning(self) -> str:
        return f"| {self.what} | `{self.command}` |"


def write_rows(page: Path, rows: Sequence[Row]) -> None:
    """Write rows into the page's table, each in place of the one of the same beginning if there is one."""
    before, _, rest = page.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    lines = table.splitlines()
    for row in rows:
        places = [number for number, line in enumerate(lines) if line.startswith(row.beginning)] or [len(lines)]
        lines[places[0] : places[0] + 1] = [str(row)]
    page.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after)
