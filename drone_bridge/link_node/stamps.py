# SPDX-License-Identifier: Apache-2.0
"""Header stamps and /clock. A node that publishes /clock stamps with it; by default none does."""

from collections.abc import Callable

from builtin_interfaces.msg import Time

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.link_node.simulated_time import SimulatedTime


class Stamps:
    """Stamps incoming data according to `time_parameters`."""

    def __init__(self, node: LinkNode) -> None:
        simulated_time = SimulatedTime(node)
        self._node = node
        #: The publisher of /clock, if this node publishes it.
        self.clock_publisher = simulated_time.clock_publisher
        # A node that drives /clock itself would hear each time only after the message that it belongs to.
        self.are_wire_time: bool = simulated_time.stamps_are_simulated
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
