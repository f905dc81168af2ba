# SPDX-License-Identifier: Apache-2.0
"""Where an emulated vehicle went: by the file that its emulator writes, whatever the topics say."""

import csv
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from drone_bridge.programs.demonstration import Pose, Row
from drone_bridge.programs.plan import Plan


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
