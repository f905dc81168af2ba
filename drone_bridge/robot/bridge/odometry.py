# SPDX-License-Identifier: Apache-2.0
"""DeadReckoning: odometry from the commanded speeds, since the robot reports none."""

from drone_bridge.robot.session.driver import MotionReport
from drone_bridge.robot.topics import TABLE, SkidSteer, Translation
from drone_bridge.ros.protocol_node import ProtocolNode
from drone_bridge.ros.topic_publishers import TopicPublishers
from drone_bridge.ros.wheel_odometry import WheelOdometry


class DeadReckoning:
    """Publisher of odom and its transform, if `publish_odometry` is true. For the loop's thread."""

    def __init__(self, node: ProtocolNode, translation: Translation, skid_steer: SkidSteer) -> None:
        self._node, self._skid_steer = node, skid_steer
        self._is_wanted = node.parameters["publish_odometry"]
        rows = [row for row in TABLE.rows if self._is_wanted and row.of is WheelOdometry]
        self._publishers = TopicPublishers(node, rows, translation)
        self.reset()

    def reset(self) -> None:
        """Return to the origin."""
        self._odometry, self._moved_s = WheelOdometry(), 0.0

    def move(self, moved: MotionReport) -> None:
        """Integrate the speeds since the last call, and publish odometry if it is due."""
        velocity = self._skid_steer.velocity(moved.speeds)
        self._odometry.advance(moved.until_s - self._moved_s, velocity.forward, velocity.turn)
        self._moved_s = moved.until_s
        if moved.is_due and self._is_wanted:
            self._node.observed.measured(*self._odometry.motion)
            self._publishers.publish(self._odometry, self._node.now())
