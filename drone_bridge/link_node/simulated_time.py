# SPDX-License-Identifier: Apache-2.0
"""Simulated time: who publishes it on /clock, and whose headers bear it. One rule for all bridges.

Nobody publishes /clock unless told to. Whoever does also stamps with it: nodes on simulated time would take stamps of
any other time for the distant future or past.
"""

from typing import Any, Final

from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.node.parameters import ParameterDeclaration

CLOCK_TOPIC: Final = "/clock"
_WATCH_PERIOD_S: Final = 1.0
_RIVALS: Final = "clock"  # of conditions


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
    """What the parameters about time say, and a watch for others that publish /clock, too."""

    def __init__(self, node: LinkNode) -> None:
        """Make the publisher, if the parameters want one."""
        self._node = node
        #: Of /clock; None unless this node is to publish it.
        self.clock_publisher: Publisher[Any] | None = None
        if node.parameters["publish_clock"]:
            newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
            self.clock_publisher = node.make_publisher(Clock, CLOCK_TOPIC, newest)
            node.make_timer(_WATCH_PERIOD_S, self._watch)
        #: Whether headers bear simulated time.
        self.stamps_are_simulated = bool(self.clock_publisher) or node.parameters["stamp_source"] == "wire"

    def _watch(self) -> None:
        """Report who else publishes /clock."""
        infos = self._node.get_publishers_info_by_topic(CLOCK_TOPIC)
        names = [f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos]
        own_name = self._node.get_fully_qualified_name()
        if own_name in names:
            names.remove(own_name)  # once: another node may have the same name
        if names:
            sentence = f"{CLOCK_TOPIC} is published by {' and '.join(sorted(names))}, too"
            self._node.statistics.begin_condition(_RIVALS, sentence)
            self._node.reports.remind(_RIVALS, f"{sentence}: set publish_clock to false in all nodes but one.")
        else:
            self._node.statistics.end_condition(_RIVALS)
            self._node.reports.end(_RIVALS)
