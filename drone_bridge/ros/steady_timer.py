# SPDX-License-Identifier: Apache-2.0
"""steady_timer: timer of real time, which a set clock or simulated time does not affect."""

from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType  # where all have it
from rclpy.node import Node
from rclpy.timer import Timer


def steady_timer(
    node: Node, period_s: float, callback: Callable[[], Any], callback_group: CallbackGroup | None = None
) -> Timer:
    """Create a timer of a node."""
    clock = Clock(clock_type=ClockType.STEADY_TIME)
    return node.create_timer(period_s, callback, callback_group=callback_group, clock=clock)
