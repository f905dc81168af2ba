# SPDX-License-Identifier: Apache-2.0
"""EmulatedLidar: a lidar that turns in a room around the place where an emulated robot starts. Pure."""

import math
from itertools import pairwise

from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot_class.transports import Lidar

#: Corners of the walls, and of a box in the room, m: x ahead of the robot at its start, y to the left. It passes walls.
ROOM = (-1.5, -1.5), (3.0, -1.5), (3.0, 1.0), (2.0, 1.0), (2.0, 2.5), (-1.5, 2.5), (-1.5, -1.5)
BOX = (1.2, -0.9), (1.7, -0.9), (1.7, -0.5), (1.2, -0.5), (1.2, -0.9)
WALLS = *pairwise(ROOM), *pairwise(BOX)


class EmulatedLidar:
    """Lidar on a robot, which measures ray by ray while it moves."""

    def __init__(self, lidar: Lidar) -> None:
        self._lidar, self._slots = lidar, round(math.tau / lidar.increment)
        self._number = 0  # of the next direction
        self._found: list[float] = []
        #: Distances of the last whole turn, as in Telemetry; None before it.
        self.scan: tuple[float, ...] | None = None

    def turn(self, time_s: float, pose: PlanarPose) -> None:
        """Measure the rays up to a time since the start, s, from the pose of the robot."""
        lidar = self._lidar
        x, y, heading = pose.seeing(PlanarPose(*lidar.mount[:2], lidar.yaw))
        while self._number * lidar.scan_s <= time_s * self._slots:
            ray = self._number % self._slots
            self._number += 1
            if ray >= lidar.rays:
                continue
            found = distance(x, y, heading + lidar.angle_min + ray * lidar.increment)
            self._found.append(found if lidar.range_min <= found <= lidar.range_max else math.inf)
            if ray == lidar.rays - 1:
                self.scan, self._found = tuple(self._found), []


def distance(x: float, y: float, heading: float) -> float:
    """Return the distance to the nearest wall in a direction, m; inf if there is none."""
    cos, sin = math.cos(heading), math.sin(heading)
    nearest = math.inf
    for (x0, y0), (x1, y1) in WALLS:
        along, across = x1 - x0, y1 - y0
        if turned := cos * across - sin * along:
            ahead = ((x0 - x) * across - (y0 - y) * along) / turned
            share = ((x0 - x) * sin - (y0 - y) * cos) / turned
            if 0.0 <= share <= 1.0 and 0.0 <= ahead < nearest:
                nearest = ahead
    return nearest
