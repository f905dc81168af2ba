# SPDX-License-Identifier: Apache-2.0
"""The topics of one entity. For the link's thread, except for creating topics."""

from typing import Any, Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from sensor_msgs.msg import Imu
from std_msgs.msg import Header

from drone_bridge.ros.common_parameters import odometry_covariances
from drone_bridge.ros.frames import FrameNames, TransformTemplate
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.message_template import STAMP, MessageTemplate
from drone_bridge.ros.time import stamp_numbers
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.ros.topics import NO_EVENTS, Output, Outputs
from drone_bridge.simulator.topics import translation as translate
from drone_bridge.simulator.topics.translation import EntityState

QUEUE_DEPTH: Final = 10
IMU_GAPS: Final = (
    *("orientation", "orientation_covariance[0]"),
    *("angular_velocity", "linear_acceleration", "linear_acceleration_covariance[0]"),
)


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
        self.transform = TransformTemplate(frames.odom, self.frame)
        #: The numbers of the newest state, as a transform has them: stamp and pose.
        self.stamp: tuple[int, int] = (0, 0)
        self.pose: tuple[float, ...] = ()
        world, body = Header(frame_id=frames.odom), Header(frame_id=self.frame)
        if name is None:
            odometry = Odometry(header=world, child_frame_id=self.frame)
            odometry_covariances(node.parameters).fill(odometry)
            self._odometry = MessageTemplate(odometry, STAMP, "pose.pose", "twist.twist")
            self._imu = MessageTemplate(Imu(header=body), STAMP, *IMU_GAPS)
            self.is_attitude_known = True
            outputs = [
                Output(node.make_publisher(Odometry, "odom", QUEUE_DEPTH), self._make_odometry),
                Output(node.make_publisher(Imu, "imu/data", QUEUE_DEPTH), self._make_imu),
            ]
        else:
            self._pose = MessageTemplate(PoseStamped(header=world), STAMP, "pose")
            self._twist = MessageTemplate(TwistStamped(header=body), STAMP, "twist")
            topic = f"entities/{topic_token(name, 'entity')}"
            outputs = [
                Output(self._publisher(PoseStamped, f"{topic}/pose"), self._make_pose),
                Output(self._publisher(TwistStamped, f"{topic}/twist"), self._make_twist),
            ]
        self._outputs: Outputs[EntityState] = Outputs(node, outputs)

    def _publisher(self, message_type: type, topic: str) -> "Publisher[Any]":
        # Without QoS override parameters, which would pile up with every name ever given.
        self._made.append(self._node.create_publisher(message_type, topic, QUEUE_DEPTH, event_callbacks=NO_EVENTS))
        return self._made[-1]

    def publish(self, state: EntityState, stamp: Time) -> None:
        """Publish a state on the topics that have subscribers."""
        self.stamp = stamp_numbers(stamp)
        self.pose = translate.pose_numbers(state)
        self._outputs.publish(state, stamp)

    def _make_odometry(self, state: EntityState, _: Time) -> bytes:
        return self._odometry.filled(self.stamp, self.pose, translate.twist_numbers(state))

    def _make_imu(self, state: EntityState, _: Time) -> bytes:
        force = translate.specific_force(state, self._against_gravity)
        unknown = (0.0 if self.is_attitude_known else -1.0,)  # -1 says that the values are not valid
        return self._imu.filled(self.stamp, state.orientation, unknown, state.angular_velocity, force, unknown)

    def _make_pose(self, _state: EntityState, _stamp: Time) -> bytes:
        return self._pose.filled(self.stamp, self.pose)

    def _make_twist(self, state: EntityState, _: Time) -> bytes:
        return self._twist.filled(self.stamp, translate.twist_numbers(state))

    def close(self) -> None:
        for publisher in self._made:
            self._node.destroy_publisher(publisher)
        self._made.clear()
