# SPDX-License-Identifier: Apache-2.0
"""Conversion between the simulator's axes, north-east-down and forward-right-down, and those of REP 103."""

import math
from collections.abc import Sequence

from drone_bridge.motion.quaternions import Quaternion
from drone_bridge.motion.wxyz import WxyzQuaternion
from drone_bridge.ros import frames

_HALF_ROOT = math.sqrt(0.5)

#: Converts a point or vector of the world, or a vector of a body. Each is its own inverse.
world, body = frames.enu_from_ned, frames.flu_from_frd


def orientation(q: Sequence[float]) -> Quaternion:
    """Return an orientation (w, x, y, z) in ROS axes. Facing north is a yaw of 90 degrees."""
    w, x, y, z = q
    return Quaternion(_HALF_ROOT * (x + y), _HALF_ROOT * (x - y), _HALF_ROOT * (w - z), _HALF_ROOT * (w + z))


def wire_orientation(q: Quaternion) -> WxyzQuaternion:
    """Return an orientation in the simulator's axes: w, x, y, z."""
    return (
        _HALF_ROOT * (q.w + q.z),
        _HALF_ROOT * (q.x + q.y),
        _HALF_ROOT * (q.x - q.y),
        _HALF_ROOT * (q.w - q.z),
    )


def rotation(q: Sequence[float]) -> Quaternion:
    """Return a rotation (w, x, y, z) between two frames of a body, such as of its camera, in ROS axes."""
    w, x, y, z = q
    return Quaternion(x, -y, -z, w)


def wire_rotation(q: Quaternion) -> WxyzQuaternion:
    """Return a rotation between two frames of a body in the simulator's axes: w, x, y, z."""
    return q.w, q.x, -q.y, -q.z
