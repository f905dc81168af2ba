# SPDX-License-Identifier: Apache-2.0
"""Poses in a plane, and the motion of wheeled vehicles."""

import math
from typing import NamedTuple


class Pose(NamedTuple):
    """A position in m and a yaw in rad, 0 along x, positive to the left."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def moved(self, seconds: float, forward: float, turn: float) -> "Pose":
        """Return the pose after moving along an arc, at m/s and rad/s to the left."""
        turned = turn * seconds
        # The chord of the arc, whose direction is halfway between those at its ends.
        chord = forward * seconds * (math.sin(turned / 2) / (turned / 2) if turned else 1.0)
        return self.seeing(Pose(chord * math.cos(turned / 2), chord * math.sin(turned / 2), turned))

    def seeing(self, other: "Pose") -> "Pose":
        """Return a pose given relative to this one in this one's frame."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return Pose(
            self.x + cos * other.x - sin * other.y,
            self.y + sin * other.x + cos * other.y,
            math.remainder(self.yaw + other.yaw, math.tau),
        )

    def seen_from(self, base: "Pose") -> "Pose":
        """Return this pose relative to another one in the same frame."""
        x, y = self.x - base.x, self.y - base.y
        cos, sin = math.cos(base.yaw), math.sin(base.yaw)
        return Pose(cos * x + sin * y, cos * y - sin * x, math.remainder(self.yaw - base.yaw, math.tau))
