# SPDX-License-Identifier: Apache-2.0
"""Dead reckoning from commanded velocities."""

from typing import Final

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.covariances import UNKNOWN_VARIANCE as UNKNOWN
from drone_bridge.ros.covariances import OdometryCovariances
from drone_bridge.ros.frame_names import FrameNames
from drone_bridge.ros.planar import Pose
from drone_bridge.ros.transforms import set_quaternion

#: Of x, y, z (m²), and about them (rad²). Errors add up without end, and nothing corrects them.
POSE_VARIANCES: Final = (UNKNOWN,) * 6
#: In (m/s)², (rad/s)²: what was commanded, of tracks that slip.
TWIST_VARIANCES: Final = (0.1, 0.1, UNKNOWN, UNKNOWN, UNKNOWN, 0.5)
_COVARIANCES: Final = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)


class WheelOdometry:
    """A pose that starts at the origin along x and integrates velocities."""

    def __init__(self) -> None:
        self.pose = Pose()
        self._velocity = (0.0, 0.0)

    def advance(self, seconds: float, forward: float, turn: float) -> None:
        """Advance with a velocity in m/s and a turn rate in rad/s."""
        self.at(self.pose.moved(seconds, forward, turn), forward, turn)

    def at(self, pose: Pose, forward: float, turn: float) -> None:
        """Set the pose, with a velocity in m/s and a turn rate in rad/s."""
        self.pose = pose
        self._velocity = (forward, turn)

    def message(self, stamp: Time, names: FrameNames) -> Odometry:
        """Return pose and velocity, with covariances for unmeasured odometry."""
        message = Odometry(child_frame_id=names.base_link)
        message.header.stamp = stamp
        message.header.frame_id = names.odom
        message.pose.pose.position.x, message.pose.pose.position.y, yaw = self.pose
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, yaw))
        message.twist.twist.linear.x, message.twist.twist.angular.z = self._velocity
        _COVARIANCES.fill(message)
        return message
