# SPDX-License-Identifier: Apache-2.0
"""in_columns: text table for a terminal."""

from collections.abc import Sequence


def in_columns(rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return a line per row, with aligned columns: the first `texts` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<" * texts + ">" * (len(widths) - texts)
    cells = ((f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)) for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in cells)
