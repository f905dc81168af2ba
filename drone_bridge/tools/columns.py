# SPDX-License-Identifier: Apache-2.0
"""in_columns: text table for a terminal."""

from collections.abc import Sequence


def in_columns(rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return a line per row, with aligned columns: the first `texts` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number < texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
