# SPDX-License-Identifier: Apache-2.0
"""StatePublisher: publishes and logs the state of a behaviour."""

import math

from builtin_interfaces.msg import Time
from rclpy.node import Node

from drone_bridge.msg import ControllerState
from drone_bridge.ros.node.log_limiter import OngoingLogLimiter
from drone_bridge.ros.publishers import NO_EVENTS

#: Number of reasons of one state that are known as logged.
MAX_REASONS = 20
#: State of a behaviour that waits for a request or for topics, as its reason says: a change of that is logged, too.
WAITING = "waiting"


class StatePublisher:
    """Publishes the state of a behaviour on ~/state, and logs changes."""

    def __init__(self, node: Node, behaviour: str, *, logs_reasons: bool = False) -> None:
        """Create the publisher. With `logs_reasons`, a change of the reason alone is logged, too."""
        self._node, self._behaviour, self._logs_reasons = node, behaviour, logs_reasons
        self._publisher = node.create_publisher(ControllerState, "~/state", 10, event_callbacks=NO_EVENTS)
        self._logged = "", ""  # state, and reason if that counts
        self._limiters: dict[str, OngoingLogLimiter] = {}  # by reason, of the present state: it may flap on a slow link
        #: Body frame of the vehicle, as named in its messages.
        self.frame_id = "base_link"
        #: Stamp of the newest processed measurements, which may be of another clock than this node's. None: ROS time.
        self.stamp: Time | None = None

    def publish(self, state: str, reason: str, distance: float | None = None) -> None:
        """Publish a state and the distance to its goal, m."""
        message = ControllerState(
            behaviour=self._behaviour, state=state, reason=reason, distance=math.nan if distance is None else distance
        )
        message.header.stamp = self.stamp or self._node.get_clock().now().to_msg()
        message.header.frame_id = self.frame_id
        self._publisher.publish(message)
        logged = state, reason if self._logs_reasons or state == WAITING else ""
        if logged == self._logged:
            return
        if state != self._logged[0] or len(self._limiters) > MAX_REASONS:
            self._limiters = {}
        self._logged = logged
        if line := self._limiters.setdefault(reason, OngoingLogLimiter()).admit(f"{state}: {reason}"):
            self._node.get_logger().info(line)
