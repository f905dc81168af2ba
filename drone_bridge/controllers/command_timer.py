# SPDX-License-Identifier: Apache-2.0
"""Timing of behaviours: command rates, and the clock of plans."""

import time
from collections.abc import Callable

from rclpy.node import Node

from drone_bridge.ros.steady_timer import steady_timer

#: Commands per second of controllers that steer by odometry or by the clock.
COMMAND_RATE = 20.0
#: Rate of an idle controller, per second, at which it checks the vehicle and publishes its state.
IDLE_RATE = 2.0


class CommandTimer:
    """Timer at COMMAND_RATE, or at IDLE_RATE while idle. Used by the executor's thread only.

    A paused simulation must not leave a vehicle on its last command, so it is independent of simulated time.
    """

    def __init__(self, node: Node, callback: Callable[[], None]) -> None:
        self._timer = steady_timer(node, 1 / IDLE_RATE, callback)

    def set_idle(self, is_idle: bool) -> None:
        period_ns = round(1e9 / (IDLE_RATE if is_idle else COMMAND_RATE))
        if period_ns != self._timer.timer_period_ns:
            self._timer.timer_period_ns = period_ns
            self._timer.reset()  # otherwise the old period runs out first


def plan_clock(node: Node) -> Callable[[], float]:
    """Return the clock for plans, s: simulated time if the node uses it, else a steady clock."""
    if node.get_parameter("use_sim_time").value:
        return lambda: node.get_clock().now().nanoseconds / 1e9
    return time.monotonic
