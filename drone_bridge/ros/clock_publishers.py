# SPDX-License-Identifier: Apache-2.0
"""Detects several publishers of /clock, which make simulated time jump."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # the name alone is for those without ROS, too
    from rclpy.node import Node

CLOCK_TOPIC: Final = "/clock"


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
