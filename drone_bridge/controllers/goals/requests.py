# SPDX-License-Identifier: Apache-2.0
"""GoalRequest: what a goal asks for, in plain values. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.motion import quaternions
from drone_bridge.motion.quaternions import IDENTITY, Placed, Quaternion, unit_quaternion

TAKE_OFF, LAND = "take_off", "land"  # all other actions follow poses
MAX_POSES = 10_000  # of a path
_FARTHEST_M = 1e6
ORIGIN: Placed = (0.0, 0.0, 0.0), IDENTITY


class GoalPose(NamedTuple):
    """Pose of a goal, in its own frame. An empty frame is that of the odometry."""

    frame: str
    x: float  # m
    y: float
    z: float  # NaN is the vehicle's present height
    orientation: Quaternion  # of length 0 for any heading

    def problem(self) -> str:
        """Return the reason why the pose is invalid, or an empty string."""
        x, y, z, q = self.x, self.y, self.z, self.orientation
        if not all(abs(value) <= _FARTHEST_M for value in (x, y, 0.0 if math.isnan(z) else z)):  # False for NaN
            return f"The position is ({x}, {y}, {z}) but must be within {_FARTHEST_M:g} m of the origin."
        if any(q) and unit_quaternion(q) is None:
            return f"The orientation is {tuple(q)} but must have length 1, or be zero for any heading."
        return ""

    def waypoint(self, origin: Placed, height: float, *, flies: bool) -> Waypoint:
        """Return the pose in the odometry frame, where `origin` is its frame's pose, and `height` the vehicle's, m."""
        (x, y, z), turned = origin
        own, keeps_height = unit_quaternion(self.orientation), math.isnan(self.z)
        dx, dy, dz = quaternions.rotated(turned, self.x, self.y, 0.0 if keeps_height else self.z)
        yaw = quaternions.euler_from_quaternion(quaternions.multiplied(turned, own))[2] if own else None
        return Waypoint(x + dx, y + dy, (height if keeps_height else z + dz) if flies else None, yaw)


@dataclass(frozen=True, slots=True)
class GoalRequest:
    """Request of an action. Those that are equal are one that was sent again."""

    name: str  # of the action
    poses: tuple[GoalPose, ...] = ()
    tolerance: float = 0.0  # m; 0 here and below selects the default
    speed: float = 0.0  # m/s
    height: float = 0.0  # of take_off, m
    original: object = None  # the message, whose stamps count for equality only

    def problem(self) -> str:
        """Return the reason why the request is invalid, or an empty string."""
        for name in ("tolerance", "speed", "height"):
            if not 0.0 <= (value := getattr(self, name)) < math.inf:
                return f"{name} is {value} but must be a finite number of at least 0."
        if self.name not in (TAKE_OFF, LAND) and not 0 < len(self.poses) <= MAX_POSES:
            return f"The path has {len(self.poses)} poses but must have 1 to {MAX_POSES}."
        return next((problem for pose in self.poses if (problem := pose.problem())), "")


class GoalFence(NamedTuple):
    """Fence of the vehicle's bridge: a convex polygon, counterclockwise, with corners in m."""

    frame: str
    corners: tuple[tuple[float, float], ...]

    def problem(self, points: Iterable[Waypoint]) -> str:
        """Return a sentence about the first point outside, which the vehicle can't reach, or an empty string."""
        for point in points:
            x, y = point.x or 0.0, point.y or 0.0
            sides = zip(self.corners, [*self.corners[1:], *self.corners[:1]], strict=True)
            if any((bx - ax) * (y - ay) < (by - ay) * (x - ax) for (ax, ay), (bx, by) in sides):
                lowest, highest = (tuple(map(end, zip(*self.corners, strict=True))) for end in (min, max))
                reach = f"from ({lowest[0]:g}, {lowest[1]:g}) to ({highest[0]:g}, {highest[1]:g})"
                return f"{point} is outside of the fence of the vehicle's bridge, which reaches {reach} m."
        return ""
