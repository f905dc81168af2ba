# SPDX-License-Identifier: Apache-2.0
"""What a flight was like, by the truth that the emulator alone knows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.kind import load
from drone_bridge.programs.demonstration import Flights, Row, pose_in_degrees
from drone_bridge.tools.grading.task import Numbers, Task, has_end

#: Between two velocities of which the difference is effort: shorter, and the file's rounding would count.
_EFFORT_PERIOD_S = 0.1


@dataclass(slots=True)
class Flown:
    """Where a vehicle was, ENU in m, and what its emulator said."""

    times: list[float] = field(default_factory=list)  # s
    places: list[Numbers] = field(default_factory=list)
    said: str = ""

    @classmethod
    def by(cls, task: Task, rows: Iterable[Row], said: str) -> Flown:
        """Read the rows of an emulator's trajectory."""
        pose = load(task.kind.demonstration).pose if task.kind.demonstration else pose_in_degrees
        flown = cls(said=said)
        for row in rows:
            x, y, z = pose(row)[:3]
            flown.times.append(float(row["time"]))
            flown.places.append((x, y, z))
        return flown


def measure(task: Task, flown: Flown) -> dict[str, float]:
    """Return the metrics that the flight has; one that it never came to, such as the time of an arrival, is absent."""
    if not flown.times:
        return {}
    places = np.array(flown.places)
    reached = _when_reached(flown, places, task.spheres)
    found: dict[str, float] = {
        "contacts": float(sum(_entries(places, each) for each in task.obstacles)),
        "effort": _effort(np.array(flown.times), places),
        "length": float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum()),
    }
    if task.path:
        found["path_error"] = float(np.sqrt(np.mean(_distances_to(task.path, places) ** 2)))
    if task.spheres:
        found["spheres"] = float(len(reached))
        found["reached"] = float(len(reached) == len(task.spheres))
        if found["reached"]:
            found["time"] = reached[-1] - flown.times[0]
    return {**_end(task, flown.said), **found}


def _end(task: Task, said: str) -> dict[str, float]:
    """Return what the emulator said of the end, the last one if there are several."""
    if not has_end(task.kind):
        return {}
    flights: Flights = load(task.kind.demonstration).flights
    ends = list(flights.done.finditer(said))
    if not ends:
        return {"reached": 0.0}
    end = ends[-1]
    is_good = end.groupdict().get("verdict") != "bad"
    return {**{name: float(end[name]) for name in flights.columns}, "reached": float(is_good)}


def _when_reached(flown: Flown, places: npt.NDArray[Any], spheres: Sequence[Numbers]) -> list[float]:
    """Return when each sphere was reached, one after the other, up to the first that was not."""
    times: list[float] = []
    index = 0
    for sphere in spheres:
        inside = np.linalg.norm(places[index:] - sphere[:3], axis=1) <= sphere[3]
        if not inside.any():
            break
        index += int(inside.argmax())
        times.append(flown.times[index])
    return times


def _entries(places: npt.NDArray[Any], sphere: Numbers) -> int:
    """Return how often the way leads into a sphere."""
    inside = np.linalg.norm(places - sphere[:3], axis=1) <= sphere[3]
    return int(inside[0]) + int(np.count_nonzero(inside[1:] & ~inside[:-1]))


def _distances_to(path: Sequence[Numbers], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return how far each place is from the nearest point of a line through points, m."""
    legs = [*itertools.pairwise(map(np.array, path))] or [(np.array(path[0]), np.array(path[0]))]
    nearest = np.full(len(places), math.inf)
    for begin, end in legs:
        along = end - begin
        share = np.clip((places - begin) @ along / max(float(along @ along), 1e-12), 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(places - begin - share[:, None] * along, axis=1))
    return nearest


def _effort(times: npt.NDArray[Any], places: npt.NDArray[Any]) -> float:
    """Return all changes of velocity added up, m/s."""
    if times[-1] - times[0] < 3 * _EFFORT_PERIOD_S:
        return 0.0
    steps = np.arange(times[0], times[-1], _EFFORT_PERIOD_S)
    sampled = np.stack([np.interp(steps, times, column) for column in places.T], axis=1)
    velocities = np.diff(sampled, axis=0) / _EFFORT_PERIOD_S
    return float(np.linalg.norm(np.diff(velocities, axis=0), axis=1).sum())
