# SPDX-License-Identifier: Apache-2.0
"""The covariances of poses and velocities.

Only an Imu marks unknown values by -1 in the first element. In other messages, readers such as robot_localization take
the absolute value of negative variances, and zeros for near certainty. So unknown quantities have a large variance.
"""

from collections.abc import Sequence
from typing import Final

from nav_msgs.msg import Odometry

#: Of what is not known at all, in m^2, rad^2, (m/s)^2 or (rad/s)^2: a filter gives it no weight.
UNKNOWN_VARIANCE: Final = 1e6
#: Of what a simulation knows exactly, but for the rounding on the wire. Not less: `ros2 param load` takes what Python
#: prints as 1e-06 for text.
EXACT_VARIANCE: Final = 0.0001
AXES: Final = 6  # x, y, z, and about x, y, z


def covariance_from_diagonal(variances: Sequence[float]) -> list[float]:
    """Return a 6 x 6 covariance, row by row, of independent axes."""
    covariance = [0.0] * AXES**2
    covariance[:: AXES + 1] = variances
    return covariance


class OdometryCovariances:
    """The covariances of one vehicle's odometry."""

    def __init__(self, pose: Sequence[float], twist: Sequence[float]) -> None:
        """Take the variances of a pose (m^2, rad^2) and a twist ((m/s)^2, (rad/s)^2), six each."""
        self._pose = covariance_from_diagonal(pose)
        self._twist = covariance_from_diagonal(twist)

    def fill(self, message: Odometry) -> None:
        message.pose.covariance = self._pose
        message.twist.covariance = self._twist
