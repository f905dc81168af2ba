# SPDX-License-Identifier: Apache-2.0
"""A bridge's ContinuousPose, and the topic that ends the goals which stood on the pose before."""

from typing import TYPE_CHECKING, Any

from std_msgs.msg import UInt32

from drone_bridge.motion.tilted_drone import TiltedDrone
from drone_bridge.ros.publishers import NO_EVENTS, try_publish
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.standard_rows import MeasuredMessages
from drone_bridge.session.continuous_pose import POSE_RESTARTS, ContinuousPose

if TYPE_CHECKING:
    from drone_bridge.ros.node.protocol_node import ProtocolNode

#: Topic with the number of times that the vehicle's own pose has begun again, since the bridge was configured.
ODOM_RESTARTS = "odom_restarts"


def report_restarts(node: "ProtocolNode") -> None:
    """Publish the restarts of a pose until cleanup. The first one ends goals from before a new bridge."""
    publisher = node.create_publisher(UInt32, ODOM_RESTARTS, latched(), event_callbacks=NO_EVENTS)
    node.cleanup.callback(node.destroy_publisher, publisher)

    def publish() -> None:
        try_publish(publisher, UInt32(data=node.report.counts[POSE_RESTARTS]))

    node.when_counted(POSE_RESTARTS, publish)
    publish()


def make_drone_pose(node: "ProtocolNode", drone: TiltedDrone, translation: MeasuredMessages[Any]) -> ContinuousPose:
    """Return the pose of a drone that is steered by tilt, also for the topics of its translation."""
    pose = ContinuousPose(node.observed, drone.max_speed, drone.max_yaw_rate)
    translation.shifted = pose.shifted
    return pose
