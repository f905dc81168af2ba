# SPDX-License-Identifier: Apache-2.0
"""Sources: subscriptions to odometry, poses and twists of entities. For the executor."""

from collections import deque
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu

from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.time import seconds_between, stamp_numbers
from drone_bridge.simulator.topics import (
    EntityState,
    SimulatorTranslation,
    with_motion,
    with_specific_force,
    with_twist,
)
from drone_bridge.simulator.topics.parameter_lines import EntityLine, published_topics

#: Messages queued per subscription.
_DEPTH = 50
_MAX_WAITING = 10  # states that wait for their other half
#: Maximum number of entities added while the node runs.
MAX_FOLLOWED = 256
#: Compatible with any publisher.
SENSOR_QOS = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)

OnState = Callable[[int, EntityState], None]
Complete = Callable[[EntityState, Any], EntityState]
OnStamped = Callable[[EntityState, Time, bool], None]


class PairedSource:
    """Completes each state from one topic with the message of the same stamp from another topic, in any order.

    While the other topic is published, states wait for it, in order.
    """

    def __init__(
        self,
        complete: Complete,
        on_state: OnStamped,
        allowed_age_s: Callable[[], float],
        is_offered: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create an empty queue.

        Args:
            complete: combines a state with its other half.
            on_state: receives each state, its stamp, and whether it is complete.
            allowed_age_s: maximum difference of the stamps if none is equal.
            is_offered: returns whether the other half is published, so that the first states wait for it.
        """
        self._complete, self._on_state, self._allowed_age_s = complete, on_state, allowed_age_s
        self._is_offered = is_offered
        self._waiting: deque[tuple[EntityState, Time]] = deque()
        self._others: deque[Any] = deque(maxlen=_DEPTH)
        self._latest_stamp: Time | None = None  # of the last delivered state
        self._are_paired: bool | None = None  # None: unknown

    def take_state(self, state: EntityState, stamp: Time) -> None:
        """Queue a state, which is delivered once its other half arrives or can no longer arrive."""
        self._waiting.append((state, stamp))
        if self._are_paired is None:
            self._are_paired = self._is_offered()
        self._process()

    def take_other(self, message: Any) -> None:
        self._others.append(message)
        self._are_paired = self._are_paired or message.header.stamp == self._latest_stamp
        self._process()

    def _other_for(self, stamp: Time) -> Any:
        """Return the first message of the other topic that is not older, else the last one, or None."""
        while len(self._others) > 1 and stamp_numbers(self._others[0].header.stamp) < stamp_numbers(stamp):
            self._others.popleft()
        return self._others[0] if self._others else None

    def _process(self) -> None:
        while self._waiting:
            state, stamp = self._waiting[0]
            other = self._other_for(stamp)
            if other is not None and other.header.stamp == stamp:
                self._are_paired = True
            elif self._are_paired and (other is None or stamp_numbers(other.header.stamp) < stamp_numbers(stamp)):
                if len(self._waiting) <= _MAX_WAITING:
                    return
                self._are_paired = False
            self._waiting.popleft()
            self._latest_stamp = stamp
            is_near = other is not None and abs(seconds_between(stamp, other.header.stamp)) <= self._allowed_age_s()
            self._on_state(self._complete(state, other) if is_near else state, stamp, is_near)


class Sources:
    """Subscriptions to the states of entities."""

    def __init__(self, node: ProtocolNode, translation: SimulatorTranslation, on_state: OnState) -> None:
        """`on_state` receives each state."""
        self._node, self._translation, self._on_state = node, translation, on_state
        self._before: dict[int, tuple[EntityState, Time]] = {}
        #: Names and subscriptions of entities added while the node runs.
        self._followed: dict[int, tuple[str, list[Subscription[Any]]]] = {}
        self._wanted: deque[tuple[int, str | None]] = deque()
        self._guard = node.make_guard_condition(self._follow_wanted)
        node.cleanup.callback(self._close)

    def follow(self, entity: int, name: str | None) -> None:
        """Subscribe to the topics of an entity added while the node runs. None: unsubscribe. For any thread."""
        self._wanted.append((entity, name))
        self._guard.trigger()

    def _follow_wanted(self) -> None:
        while self._wanted:
            entity, name = self._wanted.popleft()
            if entity in self._followed and self._followed[entity][0] != name:
                self._unfollow(entity)
            if name and entity not in self._followed and len(self._followed) < MAX_FOLLOWED:
                self._followed[entity] = name, []
                pose, twist = published_topics(name)
                self.open(EntityLine(entity, name, pose=pose, twist=twist), self._followed[entity][1])

    def _unfollow(self, entity: int) -> None:
        self._before.pop(entity, None)
        for subscription in self._followed.pop(entity)[1]:
            self._node.destroy_subscription(subscription)

    def _close(self) -> None:
        for entity in tuple(self._followed):
            self._unfollow(entity)

    def open(self, plan: EntityLine, made: "list[Subscription[Any]] | None" = None) -> None:
        """Subscribe to an entity's odometry or poses, and to their other halves. `made`: see `_take`."""
        node, translation, has_odometry = self._node, self._translation, bool(plan.odom)
        read: Callable[[Any], EntityState] = translation.wire_odometry if has_odometry else translation.wire_pose
        read_other: Callable[[Any], Any] = translation.wire_imu if has_odometry else translation.wire_twist
        complete: Complete = with_specific_force if has_odometry else with_twist
        other = node.resolve_topic_name(plan.imu or plan.twist) if plan.imu or plan.twist else ""

        def on_state(state: EntityState, stamp: Time, is_complete: bool) -> None:
            has_velocity, has_acceleration = has_odometry or is_complete, has_odometry and is_complete
            self._moved(plan.number, state, stamp, has_velocity=has_velocity, has_acceleration=has_acceleration)

        source = PairedSource(
            lambda state, message: complete(state, read_other(message)),
            on_state,
            lambda: float(node.parameters["source_timeout"]),
            lambda: bool(other) and node.count_publishers(other) > 0,
        )
        kind = Odometry if has_odometry else PoseStamped
        self._take(kind, plan.odom or plan.pose, lambda m: source.take_state(read(m), m.header.stamp), made)
        if other:  # a message that has no data is ignored
            kind = Imu if has_odometry else TwistStamped
            self._take(kind, other, lambda m: source.take_other(m) if read_other(m) else None, made)

    def _take(
        self, kind: type, topic: str, take: Callable[[Any], Any], made: "list[Subscription[Any]] | None" = None
    ) -> None:
        """Subscribe, without QoS override parameters, which would accumulate. `made` collects the subscription."""

        def receive(message: Any) -> None:
            try:
                take(message)
            except ValueError as error:
                self._node.report.count_and_warn("bad_numbers", f"Refused a message on {topic}: {error}")

        if made is None:
            self._node.make_subscription(kind, topic, receive, SENSOR_QOS)
        else:
            made.append(self._node.create_subscription(kind, topic, receive, SENSOR_QOS))

    def _moved(
        self, entity: int, state: EntityState, stamp: Time, *, has_velocity: bool, has_acceleration: bool = False
    ) -> None:
        """Deliver a state. Its missing parts are derived from the previous one."""
        before = self._before.get(entity)
        if before and not has_acceleration and 0.0 < (duration_s := seconds_between(stamp, before[1])) < 1.0:
            state = with_motion(state, before[0], duration_s, has_velocity=has_velocity)
        self._before[entity] = (state, stamp)
        self._on_state(entity, state)
