# SPDX-License-Identifier: Apache-2.0
"""When a behaviour acts: its rate, timers by a steady clock, and the clock of plans."""

import time
from collections.abc import Callable

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node

#: Per second, of what flies or drives by odometry or by the clock.
COMMAND_RATE = 20.0


def make_steady_timer(node: Node, period_s: float, callback: Callable[[], None]) -> None:
    """Call back in this period by a steady clock: a paused simulation must not leave a vehicle on its last command."""
    node.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def plan_clock(node: Node) -> Callable[[], float]:
    """Return the clock that plans go by, in s: simulated time if the node uses it, else a steady one."""
    if node.get_parameter("use_sim_time").value:
        return lambda: node.get_clock().now().nanoseconds / 1e9
    return time.monotonic
