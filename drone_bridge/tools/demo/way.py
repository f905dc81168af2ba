# SPDX-License-Identifier: Apache-2.0
"""Where an emulated vehicle went: by the file that its emulator writes, whatever the topics say."""

import csv
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from drone_bridge.motion.quaternions import euler_from_quaternion
from drone_bridge.programs.plan import Plan
from drone_bridge.ros import frames
from drone_bridge.simulator.topics.frames import orientation_from_ned_frd
from drone_bridge.testbed.topics import enu_from_testbed, enu_yaw_from_heading

Row = Mapping[str, str]


class Pose(NamedTuple):
    """Pose of a vehicle: m, and rad to the left, REP 103."""

    x: float
    y: float
    z: float
    yaw: float


@dataclass(frozen=True, slots=True)
class Displacement:
    """From start to end, in the vehicle's frame at the start."""

    ahead_m: float
    left_m: float
    turned_rad: float  # to the left, full turns included

    def error_to(self, other: "Displacement") -> tuple[float, float]:
        """Return the distance between the ends of two displacements, m, and between their headings, rad."""
        return (
            math.hypot(self.ahead_m - other.ahead_m, self.left_m - other.left_m),
            abs(self.turned_rad - other.turned_rad),
        )

    def __str__(self) -> str:
        ahead_m, left_m, turned = (round(value, 2) + 0.0 for value in (self.ahead_m, self.left_m, self.turned_rad))
        return f"{ahead_m:5.2f} m ahead, {left_m:5.2f} m left, {math.degrees(turned):4.0f}° left"


def displacement_of_plan(plan: Plan) -> Displacement:
    """Return where a plan leads that is followed exactly."""
    x = y = yaw = 0.0
    for leg in plan.legs:
        # A leg is an arc: its chord is shorter by sin(half) / half, and turned by half of the arc's angle.
        half = leg.turn * leg.duration_s / 2
        shortening = math.sin(half) / half if half else 1.0
        ahead, left = (speed * leg.duration_s * shortening for speed in (leg.forward, leg.left))
        cosine, sine = math.cos(yaw + half), math.sin(yaw + half)
        x, y, yaw = x + cosine * ahead - sine * left, y + sine * ahead + cosine * left, yaw + 2 * half
    return Displacement(x, y, yaw)


def displacement_along(poses: Sequence[Pose]) -> Displacement:
    """Return the displacement from the first pose to the last one."""
    start, end = poses[0], poses[-1]
    turned = math.fsum(math.remainder(after.yaw - before.yaw, math.tau) for before, after in itertools.pairwise(poses))
    cosine, sine = math.cos(start.yaw), math.sin(start.yaw)
    x, y = end.x - start.x, end.y - start.y
    return Displacement(cosine * x + sine * y, cosine * y - sine * x, turned)


def read_rows(path: Path) -> list[Row]:
    """Read an emulator's trajectory, but for a line that it was stopped in. Raises ValueError when it is empty."""
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[Row] = [row for row in csv.DictReader(file) if None not in row.values()]
    if not rows:
        raise ValueError(f"{path.name} has no positions.")
    return rows


# Rows of the emulators' files, in their own axes and units.


def _pose_of_testbed(row: Row) -> Pose:
    """Its own axes, degrees to the right."""
    x, y, z = enu_from_testbed(*(float(row[name]) for name in "xyz"))
    return Pose(x, y, z, enu_yaw_from_heading(math.radians(float(row["heading"]))))


def _pose_of_simulator(row: Row) -> Pose:
    """North, east, down."""
    x, y, z = frames.enu_from_ned(*(float(row[name]) for name in "xyz"))
    q = orientation_from_ned_frd(*(float(row[name]) for name in ("qw", "qx", "qy", "qz")))
    return Pose(x, y, z, euler_from_quaternion(q)[2])


def _pose_of_robot(row: Row) -> Pose:
    return Pose(float(row["x"]), float(row["y"]), 0.0, float(row["heading"]))


def _pose_of_drone(row: Row) -> Pose:
    """Degrees to the left."""
    return Pose(float(row["x"]), float(row["y"]), float(row["z"]), math.radians(float(row["yaw"])))


#: By the emulator's name.
POSE_OF: Mapping[str, Callable[[Row], Pose]] = {
    "testbed": _pose_of_testbed,
    "simulator": _pose_of_simulator,
    "robot": _pose_of_robot,
    "dronegui": _pose_of_drone,
    "landing": _pose_of_drone,
}
