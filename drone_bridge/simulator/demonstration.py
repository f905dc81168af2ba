# SPDX-License-Identifier: Apache-2.0
"""The underwater simulator in demonstrations."""

from drone_bridge.motion.quaternions import euler_from_quaternion
from drone_bridge.programs.demonstration import Demonstration, Pose, Row
from drone_bridge.ros.frames import enu_from_ned
from drone_bridge.simulator.topics import orientation_from_ned_frd


def _pose(row: Row) -> Pose:
    """North, east, down."""
    x, y, z = enu_from_ned(*(float(row[name]) for name in "xyz"))
    q = orientation_from_ned_frd(*(float(row[name]) for name in ("qw", "qx", "qy", "qz")))
    return Pose(x, y, z, euler_from_quaternion(q)[2])


DEMONSTRATION = Demonstration(pose=_pose, reports=frozenset({"gyroscope", "odom"}), needs="odom")
