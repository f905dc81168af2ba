# SPDX-License-Identifier: Apache-2.0
"""Conversions of times."""

from typing import TYPE_CHECKING, Any

from builtin_interfaces.msg import Time

if TYPE_CHECKING:
    from rclpy.node import Node


NANOSECONDS = 1_000_000_000


def stamp_numbers(stamp: Time) -> tuple[int, int]:
    """Return seconds and nanoseconds, to compare stamps by and to fill message templates with."""
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


# Detects several publishers of /clock, which make simulated time jump.


CLOCK_TOPIC = "/clock"


def is_time_simulated(node: "Node") -> bool:
    """Return whether a node uses simulated time."""
    clock: Any = node.get_clock()  # a ROSClock, which the annotation does not say
    return bool(clock.ros_time_is_active)


def clock_conflict(node: "Node") -> str | None:
    """Return a sentence that names the publishers of /clock if they conflict for `node`, which may be one of them.

    For nodes that follow /clock or publish it, as asking DDS takes 0.1 ms where that is done once a second.
    """
    own_name = node.get_fully_qualified_name()
    infos = node.get_publishers_info_by_topic(CLOCK_TOPIC)
    names = sorted(f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos)
    if own_name in names:
        names.remove(own_name)  # once: another node may have the same name
        return f"{CLOCK_TOPIC} is published by {' and '.join(names)}, too" if names else None
    return f"{CLOCK_TOPIC} is published by {' and '.join(names)}" if len(names) > 1 else None
