# SPDX-License-Identifier: Apache-2.0
"""EmulatedLidar: a lidar that turns in a room around the place where an emulated robot starts. Pure."""

import math
from itertools import pairwise

from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot_class.transports import Lidar

#: Corners of the walls, and of a box in the room, m: x ahead of the robot at its start, y to the left. It passes walls.
ROOM = (-1.5, -1.5), (3.0, -1.5), (3.0, 1.0), (2.0, 1.0), (2.0, 2.5), (-1.5, 2.5), (-1.5, -1.5)
BOX = (1.2, -0.9), (1.7, -0.9), (1.7, -0.5), (1.2, -0.5), (1.2, -0.9)
WALLS = [(*one, two[0] - one[0], two[1] - one[1]) for corners in (ROOM, BOX) for one, two in pairwise(corners)]


class EmulatedLidar:
    """Lidar on a robot, which measures ray by ray while it moves."""

    def __init__(self, lidar: Lidar) -> None:
        self._lidar, self._slots = lidar, round(math.tau / lidar.increment)
        self._number = 0  # of the next direction
        self._found: list[float] = []
        self._place, self._known = PlanarPose(), dict[int, float]()  # its own, and the distances from there by ray
        #: Distances of the last whole turn, as in Telemetry; None before it.
        self.scan: tuple[float, ...] | None = None

    def turn(self, time_s: float, pose: PlanarPose) -> None:
        """Measure the rays up to a time since the start, s, from the pose of the robot."""
        lidar = self._lidar
        place = pose.seeing(PlanarPose(*lidar.mount[:2], lidar.yaw))
        if place != self._place:
            self._place, self._known = place, {}
        x, y, heading = place
        while self._number * lidar.scan_s <= time_s * self._slots:
            ray = self._number % self._slots
            self._number += 1
            if ray >= lidar.rays:
                continue
            if (found := self._known.get(ray)) is None:
                found = self._known[ray] = distance(x, y, heading + lidar.angle_min + ray * lidar.increment)
            self._found.append(found if lidar.range_min <= found <= lidar.range_max else math.inf)
            if ray == lidar.rays - 1:
                self.scan, self._found = tuple(self._found), []


def distance(x: float, y: float, heading: float) -> float:
    """Return the distance to the nearest wall in a direction, m; inf if there is none."""
    cos, sin = math.cos(heading), math.sin(heading)
    nearest = math.inf
    for x0, y0, along, across in WALLS:
        if turned := cos * across - sin * along:
            ahead = ((x0 - x) * across - (y0 - y) * along) / turned
            if 0.0 <= ahead < nearest and 0.0 <= ((x0 - x) * sin - (y0 - y) * cos) / turned <= 1.0:
                nearest = ahead
    return nearest
