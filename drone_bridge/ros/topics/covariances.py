# SPDX-License-Identifier: Apache-2.0
"""OdometryCovariances: pose and twist covariances, and the variances of unknown and of exact components."""

import math
from collections.abc import Sequence

from geometry_msgs.msg import TwistWithCovarianceStamped
from nav_msgs.msg import Odometry

from drone_bridge.ros.node.parameters import ParameterDeclaration

#: Variance of an unknown component, m^2, rad^2, (m/s)^2 or (rad/s)^2: a filter gives it no weight.
UNKNOWN_VARIANCE = 1e6
#: Variance of an exact component of a simulation, rounded on the wire. Not less: `ros2 param load` parses 1e-06, as
#: Python prints it, as text.
EXACT_VARIANCE = 0.0001
AXES = 6  # x, y, z, and about x, y, z


def covariance_from_diagonal(variances: Sequence[float]) -> list[float]:
    """Return a 6 x 6 covariance of independent axes, row by row."""
    covariance = [0.0] * AXES**2
    covariance[:: AXES + 1] = variances
    return covariance


def twist_covariance_parameter(variances: Sequence[float]) -> ParameterDeclaration:
    """Return the parameter of the twist's variances on odom. The default is `variances`."""
    return ParameterDeclaration(
        "twist_covariance_diagonal",
        list(variances),
        "Variances of the twist on odom: x, y, z, then about x, y, z. Large values mean unknown.",
        check=_check_variances,
    )


def _check_variances(values: Sequence[float]) -> str | None:
    if len(values) != AXES or not all(math.isfinite(value) and value >= 0.0 for value in values):
        return f"is {list(values)}, but must be {AXES} finite, non-negative numbers."
    return None


def is_measured(message: TwistWithCovarianceStamped, axis: int) -> bool:
    """Return whether a component, counted from linear x to angular z, is known by its variance."""
    return bool(message.twist.covariance[axis * (AXES + 1)] < UNKNOWN_VARIANCE)


class OdometryCovariances:
    """Covariances of one vehicle's odometry."""

    def __init__(self, pose: Sequence[float], twist: Sequence[float]) -> None:
        """`pose` and `twist` are six variances each: m^2, rad^2 and (m/s)^2, (rad/s)^2."""
        self._pose = covariance_from_diagonal(pose)
        self._twist = covariance_from_diagonal(twist)

    def fill(self, message: Odometry) -> None:
        message.pose.covariance = self._pose
        message.twist.covariance = self._twist
