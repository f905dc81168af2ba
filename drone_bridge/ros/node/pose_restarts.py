# SPDX-License-Identifier: Apache-2.0
"""PoseRestarts: a bridge's ContinuousPose, and the topic that ends the goals which stood on the pose before."""

import contextlib

from std_msgs.msg import UInt32

from drone_bridge.motion.tilted_drone import TiltedDrone
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS
from drone_bridge.ros.qos import latched
from drone_bridge.session.continuous_pose import ContinuousPose, PoseRestarted

#: Topic with the number of times that the vehicle's own pose has begun again, since the bridge was configured.
ODOM_RESTARTS = "odom_restarts"


class PoseRestarts:
    """Publisher of the restarts of a vehicle's pose, and the pose for its session."""

    def __init__(self, node: ProtocolNode, max_speed: float, max_turn_rate: float) -> None:
        """The maxima are the vehicle's own, m/s and rad/s."""
        #: For the session, and for translations.
        self.pose = ContinuousPose(node.observed, max_speed, max_turn_rate)
        self._publisher = node.create_publisher(UInt32, ODOM_RESTARTS, latched(), event_callbacks=NO_EVENTS)
        node.cleanup.callback(node.destroy_publisher, self._publisher)
        self.publish(PoseRestarted(0))

    @classmethod
    def of_drone(cls, node: ProtocolNode, drone: TiltedDrone) -> "PoseRestarts":
        """Return those of a drone that is steered by tilt."""
        return cls(node, drone.max_speed, drone.max_yaw_rate)

    def publish(self, restarted: PoseRestarted) -> None:
        """Publish the number of restarts."""
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._publisher.publish(UInt32(data=restarted.count))
