# SPDX-License-Identifier: Apache-2.0
"""NeutralRepeater: forwards an operator's commands to the vehicle in ROS, and repeats a neutral command.

There are three states. Either an operator commands, and nothing is repeated. Or a neutral command is the newest, and is
published every PERIOD_S, in case it was lost, until `neutral_time` has passed or another publisher sends a non-neutral
command. After activation, the newest command is unknown: a killed server may have left the vehicle moving. Neutral
becomes the newest one once a vehicle follows, and other publishers have had PERIOD_S to send a non-neutral command.
Commands come from any thread, repeats from the executor. A lock is held while either is published, so that no repeat
follows a newer command.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data

from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes, CommandRates
from drone_bridge.ros.commands.cmd_vel_type import CmdVelPublisher, followed_type, followers
from drone_bridge.ros.commands.command_axes import shares_from_axes
from drone_bridge.ros.commands.velocity_messages import as_published
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.session.obstacles import Obstacle

#: Longer than the usual command_timeout: between repeats, a vehicle's own watchdog applies its own neutral.
PERIOD_S = 1.0
#: Topics that may command a vehicle, each with its type.
COMMAND_TOPICS = {
    **dict.fromkeys(("cmd_vel", "cmd_vel_goal", "cmd_vel_landing"), Twist),
    "cmd_vel_stamped": TwistStamped,
    "cmd_rates": CommandRates,
    "cmd_axes": CommandAxes,
}


def is_neutral(message: Any) -> bool:
    """Return whether a command is neutral: a zero Twist, or zero shares."""
    if isinstance(message, CommandAxes):
        return shares_from_axes(message) == Shares()
    twist = message.twist if isinstance(message, TwistStamped) else message
    return bool(twist == Twist())


class NeutralRepeater:
    """Publisher of an operator's commands, which repeats a neutral one while it is the newest on the vehicle's topics.

    Repeats end after the parameter `neutral_time`, or when another publisher sends a non-neutral command. While the
    vehicle is held, operators' commands are refused. `publish` is for any thread.
    """

    def __init__(
        self,
        node: ProtocolNode,
        publishers: tuple[Any, ...],
        neutral: "Callable[[], tuple[Publisher[Any], Any] | None]",
    ) -> None:
        """Start the timer of the repeats, without publishing.

        Args:
            node: the server's node.
            publishers: publishers of commands, on topics of COMMAND_TOPICS, perhaps remapped.
            neutral: returns the neutral command with its publisher, or None if it is not known yet.
        """
        self._node, node.command_publishers = node, publishers
        self._neutral = neutral
        self._lock = threading.Lock()  # so that no repeat follows a newer command
        # Time since which the neutral command is the newest, or None.
        self._since_s: float | None = None
        # Time since which the newest command is unknown, with the present subscriptions, or None.
        self._unknown_since_s: float | None = None
        self._published_s = 0.0
        # To recognize our own echo: neutral commands, and the others with their times, as sent.
        self._published: deque[Any] = deque(maxlen=100)
        self._moved: deque[tuple[float, Any]] = deque(maxlen=100)
        folder = publishers[0].topic_name.rpartition("/")[0]
        self._own = {publisher.topic_name for publisher in publishers}
        self._following: list[Any] = [each for each in publishers if isinstance(each, CmdVelPublisher)]
        others = {f"{folder}/{name}": kind for name, kind in COMMAND_TOPICS.items()}
        self._topics = {**others, **{publisher.topic_name: publisher.msg_type for publisher in publishers}}
        self._subscribed: set[str] = set()  # subscribed topics
        node.hold.when_set(self.publish_neutral)
        node.when_activated(self._begin)
        node.make_timer(PERIOD_S, self._tick)

    @property
    def age_s(self) -> float | None:
        """Age of the newest command, s, if it is neutral; else None."""
        since_s = self._since_s
        return None if since_s is None else time.monotonic() - since_s

    def publish(self, publisher: "Publisher[Any]", message: Any, decided_s: float) -> None:
        """Publish an operator's command, unless the vehicle is held.

        After a stall of this process since `decided_s` (see `ProtocolNode.publish`), the command is dropped. The
        caller's watchdog then sends the neutral command.
        """
        if is_neutral(message):
            self.publish_neutral(publisher, message)
        elif self._node.hold.admits("the operator's topics"):
            with self._lock:
                if self._node.hold.is_held:
                    return  # held meanwhile: neutral is sent before or after this lock
                self._since_s = self._unknown_since_s = None
                self._moved.append((time.monotonic(), self._publish(publisher, message, decided_s)))

    def publish_neutral(self, publisher: "Publisher[Any] | None" = None, message: Any = None) -> None:
        """Publish the neutral command, by default the server's own, and repeat it from now on."""
        with self._lock:
            self._unknown_since_s = None
            if self._since_s is None:
                self._since_s = time.monotonic()
            self._publish_neutral((publisher, message) if publisher else self._neutral())

    def repeat(self, after_s: float = 0.0) -> None:
        """Repeat the neutral command if it is the newest, and was last published at least `after_s` ago."""
        with self._lock:
            if self._since_s is not None and time.monotonic() - self._published_s >= after_s:
                self._publish_neutral(self._neutral())

    def _publish_neutral(self, neutral: "tuple[Publisher[Any], Any] | None") -> None:
        if neutral:
            self._published_s = time.monotonic()
            self._published.append(neutral[1])
            self._publish(*neutral)

    def _publish(self, publisher: "Publisher[Any]", message: Any, decided_s: float | None = None) -> Any:
        """Publish a message, and return it as sent."""
        sent = as_published(message, publisher, self._node)
        self._node.publish(publisher, sent, decided_s)
        return sent

    def _begin(self) -> None:
        """Begin after the activation: with the neutral command on hold, else without any. In the executor."""
        with self._lock:
            now_s = time.monotonic()
            self._since_s, self._unknown_since_s = (now_s, None) if self._node.hold.is_held else (None, now_s)

    def _tick(self) -> None:
        """Publish the neutral command if due. In the executor."""
        self._follow_subscribers()
        with self._lock:  # a concurrent neutral command must not be dropped
            age_s = self.age_s
            if age_s is not None and age_s > self._node.parameters["neutral_time"] and not self._node.hold.is_held:
                age_s = self._since_s = None
        if age_s is None and self._unknown_since_s is None:
            self._end_listening()
            return
        count = self._node.count_publishers
        # Subscribe to topics with other publishers before the next repeat.
        new = {topic for topic in self._topics if count(topic) > (topic in self._own)} - self._subscribed
        for topic in new:
            kind = followed_type(self._topics[topic], self._node.get_publishers_info_by_topic(topic))
            self._node.keep_subscription(
                self._node.create_subscription(kind, topic, self._take, qos_profile_sensor_data)
            )
        self._subscribed |= new
        if self._unknown_since_s is not None:
            self._decide(has_new=bool(new))
        if not new or not self._published:
            self.repeat(PERIOD_S / 2)

    def _decide(self, *, has_new: bool) -> None:
        """Make neutral the newest command if no other one is, see above. `has_new`: topics were just subscribed to."""
        is_followed = self._is_followed()
        with self._lock:
            now_s, since_s = time.monotonic(), self._unknown_since_s
            if since_s is None:
                return  # a command came meanwhile
            if has_new:
                self._unknown_since_s = now_s
            elif is_followed and now_s - since_s >= PERIOD_S:
                self._since_s, self._unknown_since_s = now_s, None

    def _take(self, message: Any) -> None:
        """Stop repeating when another publisher sends a non-neutral command; a neutral one may be our own echo.

        So may a command that is equal to one of ours of the last PERIOD_S: its echo may arrive after the neutral one.
        """
        with self._lock:
            since_s = time.monotonic() - PERIOD_S
            is_own = message in self._published or any(
                sent_s >= since_s and message == sent for sent_s, sent in self._moved
            )
            if not is_neutral(message) and not is_own:
                self._since_s = self._unknown_since_s = None

    def _follow_subscribers(self) -> None:
        for publisher in self._following:
            if (wanted := publisher.wanted()) is not publisher.msg_type:
                self._end_listening()  # there is one type for all endpoints of a node
                self._topics[publisher.topic_name] = wanted
                with self._lock:
                    publisher.change(wanted)
            self._node.report.update_obstacle(Obstacle.OTHER_TYPE, publisher.ignored, is_logged=False)
        is_lonely = self._node.report.is_open and not self._is_followed()
        facts = {"topics": " or ".join(sorted(self._own))} if is_lonely else None
        self._node.report.update_obstacle(Obstacle.NO_SUBSCRIBER, facts)

    def _is_followed(self) -> bool:
        return any(followers(self._node, topic) for topic in self._own)

    def _end_listening(self) -> None:
        for topic in self._subscribed:
            self._node.end_subscriptions(topic)
        self._subscribed.clear()
