# SPDX-License-Identifier: Apache-2.0
"""Times in messages: conversions between stamps, seconds and nanoseconds."""

from builtin_interfaces.msg import Time

NANOSECONDS = 1_000_000_000


def stamp_numbers(stamp: Time) -> tuple[int, int]:
    """Return seconds and nanoseconds, to compare stamps by."""
    return stamp.sec, stamp.nanosec


def seconds_of(stamp: Time) -> float:
    """Return a stamp in seconds."""
    return float(stamp.sec) + float(stamp.nanosec) / NANOSECONDS


def nanoseconds_of(stamp: Time) -> int:
    """Return a stamp in nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def time_from_nanoseconds(nanoseconds: int) -> Time:
    """Return nanoseconds as a message."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def time_from_seconds(seconds: float) -> Time:
    """Return non-negative seconds as a message, clamped to its range."""
    return time_from_nanoseconds(round(max(0.0, min(seconds, 2.0**31 - 1)) * NANOSECONDS))


def seconds_between(later: Time, earlier: Time) -> float:
    """Return how many seconds `later` is after `earlier`."""
    return float(later.sec - earlier.sec) + float(later.nanosec - earlier.nanosec) / NANOSECONDS
