# SPDX-License-Identifier: Apache-2.0
"""A Fast DDS discovery server: seeing all topics behind it, and noticing that it is gone."""

import os

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node

#: How long a node waits for others before it says that there are none.
_ALONE_S = 5.0


def ask_for_all_topics() -> None:
    """Have the discovery server, if there is one, announce every topic to this process. Call it before rclpy.init.

    A server announces to a client only the topics that the client itself uses, and to a super client all of them. This
    process becomes one unless ROS_SUPER_CLIENT says otherwise.
    """
    if os.environ.get("ROS_DISCOVERY_SERVER"):
        os.environ.setdefault("ROS_SUPER_CLIENT", "TRUE")


def warn_if_alone(node: Node) -> None:
    """Have a node say so, once, if it has learned of no other from its discovery server. Call it before the node spins.

    Fast DDS itself says nothing about a server that does not answer.
    """
    server = os.environ.get("ROS_DISCOVERY_SERVER")
    if not server:
        return

    def look() -> None:
        timer.cancel()
        if len(node.get_node_names()) <= 1:
            node.get_logger().warning(
                f"The discovery server {server} (ROS_DISCOVERY_SERVER) has named no other node in {_ALONE_S:g} s. "
                "If there are any with the same variable, it does not run or can't be reached: nodes that start now "
                "find nobody, and nobody finds them."
            )

    timer = node.create_timer(_ALONE_S, look, clock=Clock(clock_type=ClockType.STEADY_TIME))
