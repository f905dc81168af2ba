# SPDX-License-Identifier: Apache-2.0
"""Fast DDS discovery server: discovery of all topics, and a warning if the server does not respond."""

import os

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node

#: Time without a discovered node before the warning.
_ALONE_S = 5.0


def ask_for_all_topics() -> None:
    """Make this process a super client of the discovery server, if there is one. Call this before rclpy.init.

    A server announces only a client's own topics to the client, but all topics to a super client. A value of
    ROS_SUPER_CLIENT takes precedence.
    """
    if os.environ.get("ROS_DISCOVERY_SERVER"):
        os.environ.setdefault("ROS_SUPER_CLIENT", "TRUE")


def warn_if_alone(node: Node) -> None:
    """Log a warning, once, if the discovery server has announced no other node. Call this before the node spins.

    Fast DDS itself does not report a server that does not respond.
    """
    server = os.environ.get("ROS_DISCOVERY_SERVER")
    if not server:
        return

    def check_nodes() -> None:
        timer.cancel()
        if len(node.get_node_names()) <= 1:
            node.get_logger().warning(
                f"The discovery server {server} (ROS_DISCOVERY_SERVER) has discovered no other node within "
                f"{_ALONE_S:g} s. If other nodes use the same server, it is not running or not reachable: nodes that "
                "start now discover no others, and are not discovered."
            )

    timer = node.create_timer(_ALONE_S, check_nodes, clock=Clock(clock_type=ClockType.STEADY_TIME))
