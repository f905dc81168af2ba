# SPDX-License-Identifier: Apache-2.0
"""The signs and units of the AR.Drone's GUI."""

import math

from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, quaternion_from_euler

# The dronegui protocol has no frames, only directions: roll + goes right, pitch + goes backward, yaw + turns right.


def dronegui_axes_from_body(forward: float, left: float, up: float, left_turn: float) -> tuple[float, ...]:
    """Return roll, pitch, yaw and gas for linear x, y, z and angular z of a body; the scale stays as it is."""
    return 0.0 - left, 0.0 - forward, 0.0 - left_turn, up  # 0.0 - x, because -x of zero is the other zero


def body_from_dronegui_axes(roll: float, pitch: float, yaw: float, gas: float) -> tuple[float, float, float, float]:
    """Return linear x, y, z and angular z of a body for the axes of the wire; the scale stays as it is."""
    return 0.0 - pitch, 0.0 - roll, gas, 0.0 - yaw


def radians_from_millidegrees(angle: float) -> float:
    """Return an angle of navdata, which is in thousandths of a degree."""
    return math.radians(angle / 1000)


def millidegrees_from_radians(angle: float) -> float:
    """Return an angle as navdata has it."""
    return 1000 * math.degrees(angle)


def orientation_from_dronegui(phi: float, theta: float, psi: float) -> Quaternion:
    """Return the body's orientation. Radians; phi + banks right, theta + raises the nose, psi + turns right."""
    return quaternion_from_euler(phi, 0.0 - theta, 0.0 - psi)


def dronegui_angles_from_orientation(q: Quaternion) -> tuple[float, float, float]:
    """Return phi, theta and psi, in radians, for the body's orientation."""
    roll, pitch, yaw = euler_from_quaternion(q)
    return roll, 0.0 - pitch, 0.0 - yaw
