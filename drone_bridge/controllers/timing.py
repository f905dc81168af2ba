# SPDX-License-Identifier: Apache-2.0
"""When a behaviour acts: its rate, timers by a steady clock, and the clock of plans."""

import time
from collections.abc import Callable

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node
from rclpy.timer import Timer

#: Per second, of what flies or drives by odometry or by the clock.
COMMAND_RATE = 20.0
#: The same while there is nothing to do: how often a controller looks at the vehicle, and publishes its state.
IDLE_RATE = 2.0


def make_steady_timer(node: Node, period_s: float, callback: Callable[[], None]) -> Timer:
    """Call back in this period by a steady clock: a paused simulation must not leave a vehicle on its last command."""
    return node.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class CommandTimer:
    """Calls back at COMMAND_RATE, or at IDLE_RATE until there is something to do. For the executor."""

    def __init__(self, node: Node, callback: Callable[[], None]) -> None:
        self._timer = make_steady_timer(node, 1 / IDLE_RATE, callback)

    def set_idle(self, is_idle: bool) -> None:
        period_ns = round(1e9 / (IDLE_RATE if is_idle else COMMAND_RATE))
        if period_ns != self._timer.timer_period_ns:
            self._timer.timer_period_ns = period_ns
            self._timer.reset()  # or the period before runs out first


def plan_clock(node: Node) -> Callable[[], float]:
    """Return the clock that plans go by, in s: simulated time if the node uses it, else a steady one."""
    if node.get_parameter("use_sim_time").value:
        return lambda: node.get_clock().now().nanoseconds / 1e9
    return time.monotonic
