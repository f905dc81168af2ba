# SPDX-License-Identifier: Apache-2.0
"""Simulated time: which node publishes it on /clock, and which headers are stamped with it. One rule for all bridges.

No node publishes /clock unless configured to. One that does also stamps with it: to nodes on simulated time, stamps of
any other time would lie in the distant future or past.
"""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock

from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.time import CLOCK_TOPIC
from drone_bridge.ros.topics import newest


def time_parameters(whose: str) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of time; `whose` is for instance "the testbed's simulated"."""
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
    """Stamps incoming data, and publishes /clock, according to `time_parameters`."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        #: The publisher of /clock; None unless this node is configured to publish it.
        self.clock_publisher: Publisher[Any] | None = None
        if node.parameters["publish_clock"]:
            self.clock_publisher = node.make_publisher(Clock, CLOCK_TOPIC, newest())
        # A node that drives /clock itself would hear each time only after the message that it belongs to.
        self.are_wire_time = bool(self.clock_publisher) or node.parameters["stamp_source"] == "wire"
        #: The newest stamp.
        self.newest = Time()

    def stamp(self, wire_time: Time | None) -> Time:
        """Return and remember the stamp of data that has just arrived. `wire_time` is as for `of`."""
        self.newest = self.of(wire_time)
        return self.newest

    def of(self, wire_time: Time | None) -> Time:
        """Return the stamp of data that has just arrived; `wire_time` is its own time, if any."""
        return wire_time if wire_time and self.are_wire_time else self._node.now()

    @property
    def command_clock(self) -> Callable[[], Time] | None:
        """The clock of command stamps; None for the node's."""
        return (lambda: self.newest) if self.are_wire_time else None
