# SPDX-License-Identifier: Apache-2.0
"""WatchedTransforms: a node's publisher on /tf, which detects that another node publishes the same transforms."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import TransformStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from tf2_msgs.msg import TFMessage

from drone_bridge.ros.streams import MAX_PASSED_OVER, UNWATCHED, PolledCallbackGroup, arrived, ignore

if TYPE_CHECKING:
    from drone_bridge.ros.node.configured_node import ConfiguredNode

#: Number of looks at others' messages, one each second, after a publisher has joined or conflicts.
LOOKS = 10
#: Number of looks at their messages after as many without: a filter may begin to publish long after its start.
GLANCE, REST = 3, 10
#: Number of remembered own transforms.
_REMEMBERED = 1000


class WatchedTransforms:
    """Publisher on /tf. If others publish there, their newest messages are compared with its own, now and then."""

    def __init__(self, node: "ConfiguredNode", publisher: Any) -> None:
        self._node, self._publisher = node, publisher
        self._own: deque[tuple[Any, ...]] = deque(maxlen=_REMEMBERED)
        self._found: Sequence[str] = ()  # by the report's thread
        self._others: Sequence[str] = ()
        self._looks = 0
        self._subscription: Any = None
        #: Facts of Obstacle.SECOND_TRANSFORM, or None.
        self.facts: dict[str, object] | None = None
        # An executor's turn costs as much as several messages: without others, there is none.
        self._look = node.make_guard_condition(self.look)

    def __getattr__(self, name: str) -> Any:
        """Return the rest of rclpy's publisher."""
        return getattr(self._publisher, name)

    def publish(self, message: TFMessage) -> None:
        """Publish, and remember transforms while others publish."""
        if self._others:
            self._own.extend(map(_values, message.transforms))
        self._publisher.publish(message)

    def find_others(self) -> None:
        """Look for other publishers, and wake the executor while there are any. For each second."""
        own = self._node.get_name(), self._node.get_namespace()
        found = [(each.node_name, each.node_namespace) for each in self._node.get_publishers_info_by_topic("/tf")]
        self._found = sorted(f"{space.rstrip('/')}/{name}" for name, space in {*found} - {own} if name[0] != "_")
        if self._found or self._others:
            self._look.trigger()

    def look(self) -> None:
        """Compare the others' newest messages. For the executor."""
        others = self._found
        if others != self._others:
            self._others, self._looks = others, LOOKS
        elif self._looks == -REST:
            self._looks = GLANCE
        if not others or self._looks <= 0:
            self.facts, self._subscription = None, None
            self._looks -= 1
            self._node.end_subscriptions("/tf")
        elif self._subscription:
            messages = [message for message, _ in arrived(self._subscription, MAX_PASSED_OVER)]
            ours = {*self._own}  # only now: another thread publishes meanwhile
            frames = {frame for frame, *_ in ours}
            moved = (each for message in messages for each in message.transforms)
            doubled = {each.child_frame_id for each in moved if _values(each) not in ours} & frames
            self.facts = {"frame": min(doubled), "nodes": " or ".join(others)} if doubled else None
            self._looks = LOOKS if doubled else self._looks - 1
        else:
            qos = QoSProfile(depth=MAX_PASSED_OVER, reliability=ReliabilityPolicy.BEST_EFFORT)
            group = PolledCallbackGroup()
            self._subscription = self._node.create_subscription(
                TFMessage, "/tf", ignore, qos, callback_group=group, event_callbacks=UNWATCHED
            )
            self._node.keep_subscription(self._subscription)


def _values(each: TransformStamped) -> tuple[Any, ...]:
    stamp, place, turn = each.header.stamp, each.transform.translation, each.transform.rotation
    return each.child_frame_id, stamp.sec, stamp.nanosec, place.x, place.y, turn.z
