# SPDX-License-Identifier: Apache-2.0
"""Stamps: simulated time on /clock and in header stamps, for all bridges.

No node publishes /clock unless it is configured to. A node that does so uses the same time for its stamps: for nodes on
simulated time, other stamps would be far in the future or past. Several publishers of /clock make simulated time jump,
which `clock_conflict` detects.
"""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.node import Node

from drone_bridge.ros.commands.cmd_vel_type import UNKNOWN_NODE
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration

CLOCK_TOPIC = "/clock"
#: Seconds until a missing time is reported.
REPORTS = 5


def is_time_simulated(node: Node) -> bool:
    """Return whether a node uses simulated time."""
    clock: Any = node.get_clock()  # a ROSClock, unlike its annotation
    return bool(clock.ros_time_is_active)


class TimeWatch:
    """Watch of a node on simulated time for a time on /clock, whose publisher may start later."""

    def __init__(self, node: Node) -> None:
        self._node, self._missed = node, 0

    def facts(self, publishes_clock: bool) -> dict[str, object] | None:
        """Return the facts of Obstacle.NO_TIME if there is none after REPORTS calls, one per second; or None."""
        has_time = publishes_clock or not is_time_simulated(self._node) or self._node.get_clock().now().nanoseconds > 0
        self._missed = 0 if has_time else self._missed + 1
        return {} if self._missed > REPORTS else None


def clock_conflict(node: Node, topic: str = CLOCK_TOPIC) -> dict[str, object] | None:
    """Return the facts of Obstacle.CLOCK if /clock has several publishers, of which `node` may be one; or None.

    So for another topic that should have one publisher. Call this only for nodes that use the topic: the query of DDS
    takes 0.1 ms.
    """
    infos = [info for info in node.get_publishers_info_by_topic(topic) if info.node_name != UNKNOWN_NODE]
    names = sorted({f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos})
    return {"nodes": " and ".join(names), "topic": topic} if len(names) > 1 else None


def time_parameters(whose: str) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of time. `whose` is, for example, "the testbed's simulated"."""
    return (
        ParameterDeclaration(
            "stamp_source",
            "ros",
            f"Header stamps: ROS time at arrival, or {whose} time; always the latter if publish_clock is true.",
            choices=("ros", "wire"),
        ),
        ParameterDeclaration(
            "publish_clock", False, f"Publish {whose} time on {CLOCK_TOPIC} and use it for header stamps."
        ),
    )


class Stamps:
    """Source of stamps for received data, according to `time_parameters`."""

    def __init__(self, parameters: DeclaredParameters, now: Callable[[], Time]) -> None:
        """`now` returns the node's time."""
        self._now = now
        # A node that publishes /clock would receive each time only after the message with that time.
        self.are_wire_time = parameters["publish_clock"] or parameters["stamp_source"] == "wire"
        #: Newest stamp.
        self.newest = Time()

    def stamp(self, wire_time: Time | None) -> Time:
        """Return and store the stamp of newly received data. `wire_time` is as for `of`."""
        self.newest = self.of(wire_time)
        return self.newest

    def of(self, wire_time: Time | None) -> Time:
        """Return the stamp of newly received data. `wire_time` is their own time, or None."""
        return wire_time if wire_time and self.are_wire_time else self._now()

    @property
    def command_clock(self) -> Callable[[], Time] | None:
        """Clock of command stamps; None for the node's clock."""
        return (lambda: self.newest) if self.are_wire_time else None
