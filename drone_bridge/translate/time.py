# SPDX-License-Identifier: Apache-2.0
"""Times as messages have them."""

from builtin_interfaces.msg import Time

NANOSECONDS = 1_000_000_000


def time_from_seconds(seconds: float) -> Time:
    """Return seconds, from 0 on, as a message; what a message can't hold becomes the nearest it can."""
    nanoseconds = round(max(0.0, min(seconds, 2.0**31 - 1)) * NANOSECONDS)
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def seconds_between(later: Time, earlier: Time) -> float:
    """Return how many seconds `later` is after `earlier`."""
    return float(later.sec - earlier.sec) + float(later.nanosec - earlier.nanosec) / NANOSECONDS
