# SPDX-License-Identifier: Apache-2.0
"""The underwater simulator's axes."""

import math

from drone_bridge.motion.quaternions import Quaternion

# The underwater simulator's world is north-east-down, its bodies are forward-right-down, its quaternions w, x, y, z.

_HALF_ROOT = math.sqrt(0.5)
SimulatorQuaternion = tuple[float, float, float, float]  # w, x, y, z


def orientation_from_ned_frd(w: float, x: float, y: float, z: float) -> Quaternion:
    """Return the orientation of the same body in ENU and REP 103's axes: facing north is a yaw of 90 degrees."""
    return Quaternion(x=_HALF_ROOT * (x + y), y=_HALF_ROOT * (x - y), z=_HALF_ROOT * (w - z), w=_HALF_ROOT * (w + z))


def ned_frd_from_orientation(q: Quaternion) -> SimulatorQuaternion:
    """Return an orientation in ENU and REP 103's axes as the simulator has it."""
    return (
        _HALF_ROOT * (q.w + q.z),
        _HALF_ROOT * (q.x + q.y),
        _HALF_ROOT * (q.x - q.y),
        _HALF_ROOT * (q.w - q.z),
    )


def rotation_from_frd(w: float, x: float, y: float, z: float) -> Quaternion:
    """Return a rotation between two forward-right-down frames, of a camera on its body say, in REP 103's axes."""
    return Quaternion(x, -y, -z, w)


def frd_from_rotation(q: Quaternion) -> SimulatorQuaternion:
    """Return a rotation between two frames of REP 103 as the simulator has it."""
    return q.w, q.x, -q.y, -q.z
