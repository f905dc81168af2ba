# SPDX-License-Identifier: Apache-2.0
"""PlanarPose: pose in the plane, relative poses, and dead reckoning by velocities. Pure and immutable."""

from __future__ import annotations

import math
from typing import NamedTuple


def chord_share(turned: float) -> float:
    """Return the share of an arc's length that its chord has, for the angle by which the arc turns, rad."""
    half = turned / 2
    return math.sin(half) / half if half else 1.0  # half of the smallest number is 0


class PlanarPose(NamedTuple):
    """Position, m, and yaw, rad, 0 along x, positive to the left."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def moved(self, seconds: float, forward: float, turn: float = 0.0, left: float = 0.0) -> PlanarPose:
        """Return the pose after motion along an arc, at `forward` and `left`, m/s, and `turn`, rad/s to the left."""
        turned = turn * seconds
        share = seconds * chord_share(turned)  # the direction of the chord is the mean of those at both ends
        cos, sin = math.cos(self.yaw + turned / 2), math.sin(self.yaw + turned / 2)
        return PlanarPose(
            self.x + share * (cos * forward - sin * left),
            self.y + share * (sin * forward + cos * left),
            math.remainder(self.yaw + turned, math.tau),
        )

    def seeing(self, other: PlanarPose) -> PlanarPose:
        """Transform a pose relative to this one into this one's reference frame."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return PlanarPose(
            self.x + cos * other.x - sin * other.y,
            self.y + sin * other.x + cos * other.y,
            math.remainder(self.yaw + other.yaw, math.tau),
        )

    def seen_from(self, base: PlanarPose) -> PlanarPose:
        """Return this pose relative to another one in the same frame."""
        x, y = self.x - base.x, self.y - base.y
        cos, sin = math.cos(base.yaw), math.sin(base.yaw)
        return PlanarPose(cos * x + sin * y, cos * y - sin * x, math.remainder(self.yaw - base.yaw, math.tau))
