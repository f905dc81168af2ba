# SPDX-License-Identifier: Apache-2.0
"""What `drone-bridge demo` has to know of a protocol: its ProtocolKind names a Demonstration."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Row = Mapping[str, str]
"""Of the file that an emulator writes with --trajectory."""
Position = Sequence[float]
Arguments = Mapping[str, object]
"""Of a launch file."""
#: What a vehicle may report beside its velocity, and why an operator that needs it can't steer one that does not.
NEEDS = {
    "gyroscope": "its operators need body rates, and this vehicle reports none",
    "odom": "its operators need a position, and this vehicle reports none",
}


class Pose(NamedTuple):
    """Pose of a vehicle: ENU in m, and rad to the left, REP 103."""

    x: float
    y: float
    z: float
    yaw: float


def pose_in_degrees(row: Row) -> Pose:
    """Return the pose of a row in ENU whose yaw is in degrees to the left."""
    return Pose(float(row["x"]), float(row["y"]), float(row["z"]), math.radians(float(row["yaw"])))


@dataclass(frozen=True, slots=True)
class Condition:
    """Under which a series is flown."""

    arguments: Arguments  # of the launch file
    options: Callable[[int], str]
    """Of the emulator, by the seed of the flight"""


@dataclass(frozen=True, slots=True)
class Flights:
    """Flights to a target, whose end the emulator tells."""

    story: str
    done: re.Pattern[str]
    """What the emulator says then: `time` by its clock, s; `verdict` is good or bad, where there is one"""
    columns: Mapping[str, str]
    """The headings of the groups of `done` that are numbers"""
    arguments: Arguments
    """The one flight that is shown"""
    picture: str  # of it, the name of the file
    targets: Callable[[int, Sequence[Row]], Sequence[Position]]
    """Takes the seed and the rows of a flight; returns where the target's centre was in each of these rows, ENU in m"""
    seed: int  # of this flight
    series: str
    """What many of them are called"""
    conditions: Mapping[str, Condition]
    ready: Sequence[str]
    """What bridge and controller say, one after the other or not, once they are ready"""
    at_once: int
    """How many conditions are flown at the same time, unless somebody says otherwise"""
    fleet: str = ""
    """An entry of a fleet's file, whose {drones}, {port}, {last} (seed, from 1) and {folder} are filled in"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One of a protocol."""

    pose: Callable[[Row], Pose] = pose_in_degrees
    flights: Flights | None = None
    # Of its emulated vehicle, steered by operators of other protocols.
    arguments: Arguments = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)  # of the bridge
    reports: frozenset[str] = frozenset({"odom"})  # of NEEDS, and "cameras"
    takeoff: str = ""
    """The service by which it takes off, for operators that have no word for it"""
    # Of its operators, steering vehicles of other protocols.
    needs: str = ""  # of NEEDS
    serving: Callable[[frozenset[str]], Arguments] = lambda _: {}
    """Takes what the vehicle reports, and returns arguments of the server's launch file"""
    server_parameters: Mapping[str, float | str] = field(default_factory=dict)
