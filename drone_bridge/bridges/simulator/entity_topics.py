# SPDX-License-Identifier: Apache-2.0
"""The topics of one entity. For the link's thread, except for creating topics."""

from typing import Any, Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose, PoseStamped, Quaternion, TransformStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from sensor_msgs.msg import Imu
from std_msgs.msg import Header

from drone_bridge.link_node.common_parameters import odometry_covariances
from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.link_node.outputs import Output, Outputs
from drone_bridge.node.publisher_events import NO_EVENTS
from drone_bridge.translate import simulator as translate
from drone_bridge.translate.frame_names import FrameNames
from drone_bridge.translate.simulator import EntityState
from drone_bridge.translate.topic_names import topic_token

#: How often subscribers are counted.
SUBSCRIBER_CHECK_PERIOD_S: Final = 0.2
QUEUE_DEPTH: Final = 10


class EntityTopics:
    """The topics of one entity: odom and imu/data of the vehicle, pose and twist of others."""

    def __init__(
        self, node: LinkNode, name: str | None, frames: FrameNames, gravity: tuple[float, float, float]
    ) -> None:
        """`name` is None for the vehicle; `gravity` is the acceleration against gravity at rest."""
        self._against_gravity = gravity
        self.frame = frames.base_link if name is None else f"{frames.prefix}{topic_token(name, 'entity')}"
        self._made: list[Publisher[Any]] = []
        self._node = node
        # All messages share what is the same in them, so that it is filled once.
        self._world, self._body = Header(frame_id=frames.odom), Header(frame_id=self.frame)
        self._orientation = Quaternion()
        pose = Pose(orientation=self._orientation)
        if name is None:
            self._odometry = Odometry(header=self._world, child_frame_id=self.frame)
            odometry_covariances(node.parameters).fill(self._odometry)
            self._odometry.pose.pose = pose
            self._imu = Imu(header=self._body, orientation=self._orientation)
            outputs = [
                Output(node.make_publisher(Odometry, "odom", QUEUE_DEPTH), self._fill_odometry),
                Output(node.make_publisher(Imu, "imu/data", QUEUE_DEPTH), self._fill_imu),
            ]
        else:
            self._pose = PoseStamped(header=self._world, pose=pose)
            self._twist = TwistStamped(header=self._body)
            topic = f"entities/{topic_token(name, 'entity')}"
            outputs = [
                Output(self._make(PoseStamped, f"{topic}/pose"), self._fill_pose),
                Output(self._make(TwistStamped, f"{topic}/twist"), self._fill_twist),
            ]
        self._outputs: Outputs[EntityState] = Outputs(node, outputs, SUBSCRIBER_CHECK_PERIOD_S)
        self._transform = TransformStamped(header=self._world, child_frame_id=self.frame)
        self._transform.transform.rotation = self._orientation

    def _make(self, message_type: type, topic: str) -> "Publisher[Any]":
        # Without QoS override parameters, which would pile up with every name ever given.
        self._made.append(self._node.create_publisher(message_type, topic, QUEUE_DEPTH, event_callbacks=NO_EVENTS))
        return self._made[-1]

    def publish(self, state: EntityState, stamp: Time) -> None:
        """Publish a state on the topics that have subscribers."""
        self._world.stamp = self._body.stamp = stamp
        translate.fill_orientation(self._orientation, state)
        self._outputs.publish(state, stamp)

    def transform(self, state: EntityState) -> TransformStamped:
        """Return the transform of the state that was published just now, in a message that the next one changes."""
        translate.fill_position(self._transform.transform.translation, state)
        return self._transform

    def _fill_odometry(self, state: EntityState, _: Time) -> Odometry:
        translate.fill_odometry(self._odometry, state)
        return self._odometry

    def _fill_imu(self, state: EntityState, _: Time) -> Imu:
        translate.fill_imu(self._imu, state, self._against_gravity)
        return self._imu

    def mark_attitude(self, *, is_known: bool) -> None:
        """Set in imu/data whether values that depend on the vehicle's attitude are valid."""
        self._imu.orientation_covariance[0] = self._imu.linear_acceleration_covariance[0] = 0.0 if is_known else -1.0

    def _fill_pose(self, state: EntityState, _: Time) -> PoseStamped:
        translate.fill_position(self._pose.pose.position, state)
        return self._pose

    def _fill_twist(self, state: EntityState, _: Time) -> TwistStamped:
        translate.fill_twist(self._twist, state)
        return self._twist

    def close(self) -> None:
        for publisher in self._made:
            self._node.destroy_publisher(publisher)
        self._made.clear()
