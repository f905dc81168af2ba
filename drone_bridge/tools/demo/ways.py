# SPDX-License-Identifier: Apache-2.0
"""Which way an emulated vehicle went: read from the file that its emulator writes, whatever topics say."""

import csv
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from drone_bridge.operators.plan import Plan
from drone_bridge.translate import frames

Row = Mapping[str, str]


class Place(NamedTuple):
    """Where a vehicle is and looks: m and rad, REP 103."""

    x: float
    y: float
    yaw: float


@dataclass(frozen=True, slots=True)
class Way:
    """From start to end, in the frame of the vehicle at the start."""

    ahead_m: float
    left_m: float
    turned_rad: float  # to the left, full turns included

    def missed(self, other: "Way") -> tuple[float, float]:
        """Return how far apart two ways end, m, and the angle between where vehicles look then, rad."""
        return (
            math.hypot(self.ahead_m - other.ahead_m, self.left_m - other.left_m),
            abs(self.turned_rad - other.turned_rad),
        )

    def __str__(self) -> str:
        """Return it in one line."""
        ahead_m, left_m, turned = (round(value, 2) + 0.0 for value in (self.ahead_m, self.left_m, self.turned_rad))
        return f"{ahead_m:5.2f} m ahead, {left_m:5.2f} m left, {math.degrees(turned):4.0f}° left"


def way_of_plan(plan: Plan) -> Way:
    """Return where a vehicle comes that follows a plan to the letter."""
    x = y = yaw = 0.0
    for leg in plan.legs:
        # What is the same all along an arc comes of its chord: as long as sin(half)/half of the arc, halfway turned.
        half = leg.turn * leg.duration_s / 2
        share = math.sin(half) / half if half else 1.0
        ahead, left = (speed * leg.duration_s * share for speed in (leg.forward, leg.left))
        cosine, sine = math.cos(yaw + half), math.sin(yaw + half)
        x, y, yaw = x + cosine * ahead - sine * left, y + sine * ahead + cosine * left, yaw + 2 * half
    return Way(x, y, yaw)


def way_of_file(path: Path, place_of: Callable[[Row], Place]) -> Way:
    """Return the way in an emulator's trajectory. Raises ValueError when there is none."""
    with path.open(newline="", encoding="utf-8") as file:
        places = [place_of(row) for row in csv.DictReader(file) if None not in row.values()]
    if not places:
        raise ValueError(f"{path.name} tells of no place.")
    start, end = places[0], places[-1]
    turned = math.fsum(math.remainder(after.yaw - before.yaw, math.tau) for before, after in itertools.pairwise(places))
    cosine, sine = math.cos(start.yaw), math.sin(start.yaw)
    x, y = end.x - start.x, end.y - start.y
    return Way(cosine * x + sine * y, cosine * y - sine * x, turned)


# Places in the files of the emulators, by their own axes and units.


def place_of_testbed(row: Row) -> Place:
    """Read a row of the testbed: its own axes, degrees to the right."""
    x, y, _ = frames.enu_from_testbed(*(float(row[name]) for name in "xyz"))
    return Place(x, y, frames.enu_yaw_from_heading(math.radians(float(row["heading"]))))


def place_of_simulator(row: Row) -> Place:
    """Read a row of the simulator: north, east, down."""
    x, y, _ = frames.enu_from_ned(*(float(row[name]) for name in "xyz"))
    q = frames.orientation_from_ned_frd(*(float(row[name]) for name in ("qw", "qx", "qy", "qz")))
    return Place(x, y, math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z)))


def place_of_robot(row: Row) -> Place:
    """Read a row of the robot: radians to the left."""
    return Place(float(row["x"]), float(row["y"]), float(row["heading"]))


def place_of_drone(row: Row) -> Place:
    """Read a row of the AR.Drone, or of the drone above the rover: degrees to the left."""
    return Place(float(row["x"]), float(row["y"]), math.radians(float(row["yaw"])))
