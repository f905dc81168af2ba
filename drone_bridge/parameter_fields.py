# SPDX-License-Identifier: Apache-2.0
"""Dataclass fields with a description and a range, from which ROS parameters are declared."""

from dataclasses import field
from typing import Any

MEANING = "meaning"
RANGE = "range"


def parameter(default: Any, meaning: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a dataclass field with a default, a description that names the unit, and an optional range."""
    bounds = None if low is None or high is None else (low, high)
    return field(default=default, metadata={MEANING: meaning, RANGE: bounds})
