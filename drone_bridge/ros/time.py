# SPDX-License-Identifier: Apache-2.0
"""Times in messages: conversions between stamps, seconds and nanoseconds."""

from builtin_interfaces.msg import Time

NANOSECONDS = 1_000_000_000


def stamp_numbers(stamp: Time) -> tuple[int, int]:
    """Return seconds and nanoseconds, for comparing stamps."""
    return stamp.sec, stamp.nanosec


def seconds_of(stamp: Time) -> float:
    """Convert a stamp to seconds."""
    return float(stamp.sec) + float(stamp.nanosec) / NANOSECONDS


def nanoseconds_of(stamp: Time) -> int:
    """Convert a stamp to nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def time_from_nanoseconds(nanoseconds: int) -> Time:
    """Convert nanoseconds to a stamp."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def time_from_seconds(seconds: float) -> Time:
    """Convert seconds to a stamp, clamped to its range."""
    return time_from_nanoseconds(round(max(0.0, min(seconds, 2.0**31 - 1)) * NANOSECONDS))


def seconds_between(later: Time, earlier: Time) -> float:
    """Return the time from `earlier` to `later`, s."""
    return float(later.sec - earlier.sec) + float(later.nanosec - earlier.nanosec) / NANOSECONDS
