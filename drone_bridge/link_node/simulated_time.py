# SPDX-License-Identifier: Apache-2.0
"""Simulated time: who publishes it on /clock, and whose headers bear it. One rule for all bridges.

Nobody publishes /clock unless told to. Whoever does also stamps with it: nodes on simulated time would take stamps of
any other time for the distant future or past.
"""

from typing import Any

from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.node.clock_publishers import CLOCK_TOPIC
from drone_bridge.node.parameters import ParameterDeclaration


def time_parameters(whose: str) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters about time; `whose`, for instance: the testbed's simulated."""
    return (
        ParameterDeclaration(
            "stamp_source",
            "ros",
            f"Header stamps: ROS time at arrival, or {whose} time, as always when publish_clock is true.",
            choices=("ros", "wire"),
        ),
        ParameterDeclaration("publish_clock", False, f"Publish {whose} time on {CLOCK_TOPIC}, and stamp with it."),
    )


class SimulatedTime:
    """What the parameters about time say."""

    def __init__(self, node: LinkNode) -> None:
        """Make the publisher, if the parameters want one."""
        #: Of /clock; None unless this node is to publish it.
        self.clock_publisher: Publisher[Any] | None = None
        if node.parameters["publish_clock"]:
            newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
            self.clock_publisher = node.make_publisher(Clock, CLOCK_TOPIC, newest)
        #: Whether headers bear simulated time.
        self.stamps_are_simulated = bool(self.clock_publisher) or node.parameters["stamp_source"] == "wire"
