# SPDX-License-Identifier: Apache-2.0
"""Time: /clock and header stamps. For the link's thread."""

import math
import time
from typing import Final

from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock

from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.simulated_time import SimulatedTime
from drone_bridge.simulator.bridge.clock import SimulationClock

#: How often /clock is repeated while the simulation stands still, for those who have come meanwhile.
IDLE_PERIOD_S: Final = 0.2


class TimeKeeper:
    """Publishes simulation time at a limited rate, and stamps messages."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self.clock = SimulationClock()
        simulated_time = SimulatedTime(node)
        self._publisher = simulated_time.clock_publisher
        self.stamps_are_simulated = simulated_time.stamps_are_simulated
        self._period_s: float = 1.0 / node.parameters["clock_rate"]
        self._published_s = -math.inf
        self._next_s = -math.inf  # when the next message would be on time, if there are as many as there may be
        self._is_pending = False
        self._stamp: Time | None = None

    def stamp(self) -> Time:
        """Return the header stamp, the same one for all messages of a step."""
        if self._stamp is None:
            self._stamp = self.clock.message() if self.stamps_are_simulated else self._node.now()
        return self._stamp

    def step(self) -> None:
        """Count a step, and publish the time if due."""
        self.clock.step()
        self._stamp = None
        self._is_pending = True
        self.tick(time.monotonic())

    @property
    def due_s(self) -> float:
        """When `tick` is due."""
        if self._publisher is None or not self.clock.is_known:
            return math.inf
        if self._is_pending:
            # Steps that come about as often come now early, now late. To wait for the early ones would be one more
            # turn of the link's thread each.
            return self._next_s - self._period_s / 2
        return self._published_s + IDLE_PERIOD_S

    def tick(self, now_s: float) -> None:
        """Publish the time if due; to be called before messages are read."""
        self._stamp = None
        if now_s >= self.due_s and self._publisher:
            self._published_s = now_s
            self._next_s = max(self._next_s, now_s) + self._period_s
            self._is_pending = False
            self._node.publish(self._publisher, Clock(clock=self.clock.message()))
