# SPDX-License-Identifier: Apache-2.0
"""Numbers of JSON documents: 320 and 320.0 are the same one, as JSON has one kind, and true is none."""

from typing import Any


def is_number(value: Any) -> bool:
    """Return whether a value is a number; NaN and infinity, which some JSON libraries know, count as numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def whole_number(value: Any) -> int | None:
    """Return a number that has no fraction as an integer, however it was written; None for anything else."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if is_number(value) else None
