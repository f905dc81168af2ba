# SPDX-License-Identifier: Apache-2.0
"""Conversions of times."""

from builtin_interfaces.msg import Time

NANOSECONDS = 1_000_000_000


def time_from_seconds(seconds: float) -> Time:
    """Return non-negative seconds as a message, clamped to its range."""
    nanoseconds = round(max(0.0, min(seconds, 2.0**31 - 1)) * NANOSECONDS)
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def seconds_between(later: Time, earlier: Time) -> float:
    """Return how many seconds `later` is after `earlier`."""
    return float(later.sec - earlier.sec) + float(later.nanosec - earlier.nanosec) / NANOSECONDS
