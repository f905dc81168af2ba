# SPDX-License-Identifier: Apache-2.0
"""JSON numbers: 320 equals 320.0, and booleans are not numbers."""

from typing import Any


def is_number(value: Any) -> bool:
    """Return whether a value is a number. NaN and infinity, which some JSON libraries accept, count as numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def whole_number(value: Any) -> int | None:
    """Return a number without a fraction as an int, whether it was written as 320 or 320.0. Otherwise return None."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if is_number(value) else None
