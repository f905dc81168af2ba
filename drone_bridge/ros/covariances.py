# SPDX-License-Identifier: Apache-2.0
"""OdometryCovariances: the covariances of poses and velocities, and what an unknown component has for one."""

from collections.abc import Sequence

from geometry_msgs.msg import TwistWithCovarianceStamped
from nav_msgs.msg import Odometry

#: Of what is not known at all, in m^2, rad^2, (m/s)^2 or (rad/s)^2: a filter gives it no weight.
UNKNOWN_VARIANCE = 1e6
#: Of what a simulation knows exactly, but for the rounding on the wire. Not less: `ros2 param load` takes what Python
#: prints as 1e-06 for text.
EXACT_VARIANCE = 0.0001
AXES = 6  # x, y, z, and about x, y, z


def covariance_from_diagonal(variances: Sequence[float]) -> list[float]:
    """Return a 6 x 6 covariance, row by row, of independent axes."""
    covariance = [0.0] * AXES**2
    covariance[:: AXES + 1] = variances
    return covariance


def is_measured(message: TwistWithCovarianceStamped, axis: int) -> bool:
    """Return whether a component is known, counted from linear x to angular z: its variance says so."""
    return bool(message.twist.covariance[axis * (AXES + 1)] < UNKNOWN_VARIANCE)


class OdometryCovariances:
    """The covariances of one vehicle's odometry."""

    def __init__(self, pose: Sequence[float], twist: Sequence[float]) -> None:
        """Take the variances of a pose (m^2, rad^2) and a twist ((m/s)^2, (rad/s)^2), six each."""
        self._pose = covariance_from_diagonal(pose)
        self._twist = covariance_from_diagonal(twist)

    def fill(self, message: Odometry) -> None:
        message.pose.covariance = self._pose
        message.twist.covariance = self._twist
