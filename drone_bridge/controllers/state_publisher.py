# SPDX-License-Identifier: Apache-2.0
"""Publishes what a behaviour is doing."""

import math

from builtin_interfaces.msg import Time
from rclpy.node import Node

from drone_bridge.msg import ControllerState


class StatePublisher:
    """Publishes the state of a behaviour on ~/state, and logs it when it changes."""

    def __init__(self, node: Node, behaviour: str, *, logs_reasons: bool = False) -> None:
        """With `logs_reasons`, a state is also logged when only its reason changes."""
        self._node, self._behaviour, self._logs_reasons = node, behaviour, logs_reasons
        self._publisher = node.create_publisher(ControllerState, "~/state", 10)
        self._logged = ""

    def publish(self, state: str, reason: str, distance: float | None = None, stamp: Time | None = None) -> None:
        """Publish a state, with the distance to its goal in m, stamped now unless told otherwise."""
        message = ControllerState(
            behaviour=self._behaviour, state=state, reason=reason, distance=math.nan if distance is None else distance
        )
        message.header.stamp = stamp or self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
        line = f"{state}: {reason}"
        if (logged := line if self._logs_reasons else state) != self._logged:
            self._logged = logged
            self._node.get_logger().info(line)
