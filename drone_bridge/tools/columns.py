# SPDX-License-Identifier: Apache-2.0
"""Rows of text as a table to be read on a terminal."""

from collections.abc import Sequence


def in_columns(rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return a line per row, its columns as wide as they must be: the first `texts` to the left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number < texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
