# SPDX-License-Identifier: Apache-2.0
"""Odometry from the speeds that a robot was sent, as it reports none of its own."""

import math

from nav_msgs.msg import Odometry
from tf2_msgs.msg import TFMessage

from drone_bridge.robot.topics.translation import SkidSteer, Speeds
from drone_bridge.ros.common_parameters import frame_names, odometry_covariances
from drone_bridge.ros.frames import FrameNames, WheelOdometry, odometry_transform
from drone_bridge.ros.link_node import LinkNode


class DeadReckoning:
    """Publishes odom and its transform, if `publish_odometry` is true. For the link's thread."""

    def __init__(self, node: LinkNode, skid_steer: SkidSteer) -> None:
        get = node.parameters.__getitem__
        self._node = node
        self._skid_steer = skid_steer
        self._names = frame_names(node.parameters, FrameNames)
        self._covariances = odometry_covariances(node.parameters)
        is_wanted = get("publish_odometry")
        self._period_s = 1 / get("odometry_rate") if is_wanted else math.inf
        self._publisher = node.make_publisher(Odometry, "odom", 10) if is_wanted else None
        self._tf_publisher = node.make_publisher(TFMessage, "/tf", 100) if is_wanted and get("publish_tf") else None

    def reset(self) -> None:
        """Return to the origin."""
        self._odometry = WheelOdometry()

    def begin(self, now_s: float) -> None:
        """Begin a conversation, with the robot where it was; times are of a monotonic clock, in s."""
        self._moved_s = now_s
        #: When `publish_if_due` is.
        self.due_s = now_s + self._period_s

    def move(self, speeds: Speeds, now_s: float) -> None:
        """Follow the speeds that the robot has had since the last call."""
        self._odometry.advance(now_s - self._moved_s, *self._skid_steer.motion(speeds))
        self._moved_s = now_s

    def publish_if_due(self, now_s: float) -> None:
        """Publish the odometry at its rate."""
        if now_s < self.due_s:
            return
        self.due_s = max(self.due_s + self._period_s, now_s)
        if self._publisher is None:
            return
        message = self._odometry.message(self._node.now(), self._names)
        self._covariances.fill(message)
        self._node.publish(self._publisher, message)
        if self._tf_publisher:
            self._node.publish(self._tf_publisher, TFMessage(transforms=[odometry_transform(message)]))
