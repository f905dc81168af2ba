# SPDX-License-Identifier: Apache-2.0
"""An autopilot's commands as rates and thrust, or as velocities."""

from typing import Any, Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from rclpy.publisher import Publisher

from drone_bridge.msg import CommandRates
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topics import newest
from drone_bridge.testbed.topics import translation as translate
from drone_bridge.testbed.topics.translation import Command

AUTO: Final = "auto"
RATES: Final = "cmd_rates"
VELOCITY: Final = "cmd_vel"
CHOICES: Final = (AUTO, RATES, VELOCITY)
#: Nodes that only observe, as do those with hidden names, such as that of ros2 topic echo.
_OBSERVERS: Final = frozenset({"recorder", "rosbag2_recorder", "web_bridge", "foxglove_bridge"})
#: The node name of an endpoint whose participant has not been discovered yet.
_UNKNOWN: Final = "_NODE_NAME_UNKNOWN_"


class CommandOutputs:
    """The publishers, of which one is `chosen`. `check_subscribers` is for the executor, the rest for other threads."""

    def __init__(self, node: LinkNode, frame_id: str) -> None:
        """Create the publishers that the parameter command_output allows."""
        self._node = node
        self._frame_id = frame_id
        choice = node.parameters["command_output"]
        self._allowed = (RATES, VELOCITY) if choice == AUTO else (choice,)
        types = {RATES: CommandRates, VELOCITY: Twist}
        self.publishers = {topic: node.make_publisher(types[topic], topic, newest()) for topic in self._allowed}
        #: The topic that is published, and the one that should be.
        self.chosen = self.wanted = self._seen_best = self._allowed[0]

    @property
    def topics(self) -> str:
        """The topics that may be published, as text."""
        return " or ".join(map(self._node.resolve_topic_name, self._allowed))

    @property
    def is_velocity(self) -> bool:
        """Whether velocities are published."""
        return self.chosen == VELOCITY

    def check_subscribers(self, *, is_flying: bool) -> bool:
        """Choose the topic by its subscribers, preferring rates; return whether there are any.

        A change takes two checks, as the subscriptions of one node are not discovered at once. In flight the topic
        changes only once it has lost its subscribers.
        """
        subscribed = [topic for topic in self._allowed if self._has_subscribers(topic)]
        best, before = subscribed[0] if subscribed else self.wanted, self._seen_best
        self._seen_best = best
        if best == before and not (is_flying and self.wanted in subscribed):
            self.wanted = best
        return bool(subscribed)

    def rates(self, command: Command, stamp: Time) -> "tuple[Publisher[Any], CommandRates]":
        """Return rates and thrust, with the stamp of the frame that they answer, and their publisher."""
        message = translate.rates_from_command(command, stamp)
        message.header.frame_id = self._frame_id
        return self.publishers[RATES], message

    def velocity(self, twist: Twist) -> "tuple[Publisher[Any], Twist]":
        """Return a velocity and its publisher."""
        return self.publishers[VELOCITY], twist

    def _has_subscribers(self, topic: str) -> bool:
        subscriptions = self._node.get_subscriptions_info_by_topic(self._node.resolve_topic_name(topic))
        names = {subscription.node_name for subscription in subscriptions} - _OBSERVERS
        return any(not name.startswith("_") or name == _UNKNOWN for name in names)
