# SPDX-License-Identifier: Apache-2.0
"""The file of a task: what is flown, by what kind of submission, and what is marked."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from drone_bridge.kind import Program, ProtocolKind, kinds, load

#: What is measured of every flight; what an emulator says of its end (a landing's error, ...) comes on top.
METRICS = ("reached", "time", "spheres", "contacts", "path_error", "effort", "length")
#: Of these, and of a topic's messages, more is better.
_MORE = ("reached", "spheres", "/")
PROGRAM = "program"  # speaks the vehicle's own protocol, in any language
NODE = "node"  # of ROS
CLASS = "class"  # of Python, with a method act(observation) -> action, named as in pilot.py:Pilot
SIMULATED, REAL = "simulated", "real"  # whose time the vehicle keeps; it waits for each answer, or not

Numbers = tuple[float, ...]


class TaskError(Exception):
    """A task can't be run; the text says what is wrong, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Points for a metric: all from `full` on, none from `none` on, shares between; without `none`, all or nothing."""

    metric: str
    points: float
    full: float
    none: float | None = None

    def __post_init__(self) -> None:
        if not self.points > 0 or self.full == self.none:
            raise TaskError(f"The mark for {self.metric} needs points above 0, and full and none that differ.")

    def of(self, value: float | None) -> float:
        """Return the points for a value, to a tenth; none for what was not achieved at all."""
        if value is None or not math.isfinite(value):
            return 0.0
        if self.none is None:
            is_good = value >= self.full if self.metric.startswith(_MORE) else value <= self.full
            return self.points * is_good
        return round(self.points * min(1.0, max(0.0, (value - self.none) / (self.full - self.none))), 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a submission may use; more than that ends the run."""

    memory: int = 2048  # MiB, of all its processes
    processes: int = 32
    output: int = 1024  # KiB
    files: int = 64  # MiB, in the folder of its own
    cpu: float = 120.0  # s of processor time, of all its processes
    silence: float = 20.0  # s for which an answer may take


@dataclass(frozen=True, slots=True)
class Task:
    """What is flown, and what is marked. Places are ENU in m, in the emulator's world."""

    file: Path
    title: str
    kind: ProtocolKind
    submission: str
    clock: str
    seeds: tuple[int, ...]
    time_limit: float  # s of the vehicle's time
    marks: tuple[Mark, ...]
    options: Mapping[str, Any]  # of the emulator, or of the environment
    launch: str
    arguments: Mapping[str, Any]  # of the launch file
    spheres: tuple[Numbers, ...]  # to be reached, one after the other: x, y, z, radius
    obstacles: tuple[Numbers, ...]
    path: tuple[Numbers, ...]
    limits: Limits

    @property
    def points(self) -> float:
        return sum(mark.points for mark in self.marks)

    def emulator_words(self, seed: int, port: int, trajectory: Path) -> list[str]:
        """Return the emulator's command line."""
        seeded = {"seed": seed} if not _complaint(self.kind, {"seed": 1}) else {}
        told: dict[str, Any] = {"port": port, "duration": self.time_limit, "trajectory": str(trajectory)}
        return Program.words({**self.kind.emulator.apart, **seeded, **told, **self.options})


def read_task(file: Path) -> Task:
    """Read a task. Raises TaskError and OSError."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TaskError(f"{file} has to have lines like 'vehicle: testbed'.")
        return _task(file.resolve(), content)
    except (yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise TaskError(f"{file}: {' '.join(str(error).split())}") from error


def _task(file: Path, content: dict[str, Any]) -> Task:
    _allow("key", content, {each.name for each in fields(Task)} - {"file", "kind"} | {"vehicle"})
    by_vehicle = {kind.emulator.name: kind for kind in kinds().values()}
    _allow("vehicle", [content.get("vehicle")], by_vehicle)
    _allow("submission", [submission := str(content.get("submission"))], (PROGRAM, NODE, CLASS))
    _allow("clock", [clock := content.get("clock", SIMULATED if submission == CLASS else REAL)], (SIMULATED, REAL))
    kind = by_vehicle[content["vehicle"]]
    task = Task(
        file=file,
        title=str(content.get("title", file.stem)),
        kind=kind,
        submission=submission,
        clock=clock,
        seeds=tuple(map(int, content.get("seeds", [0]))),
        time_limit=float(content.get("time_limit", 60.0)),
        marks=tuple(Mark(**mark) for mark in content.get("marks", ())),
        options=dict(content.get("options", {})),
        launch=str(content.get("launch", kind.launch_file)),
        arguments=dict(content.get("arguments", {})),
        spheres=_places(content.get("spheres", ()), 4),
        obstacles=_places(content.get("obstacles", ()), 4),
        path=_places(content.get("path", ()), 3),
        limits=Limits(**content.get("limits", {})),
    )
    if not task.marks or not task.seeds or not 0 < task.time_limit < math.inf:
        raise TaskError(f"{file} needs marks, seeds, and a time_limit above 0 s.")
    told = load(kind.demonstration).flights.columns if has_end(kind) else ()
    topics = [mark.metric for mark in task.marks if mark.metric.startswith("/") and submission == NODE]
    _allow("metric", [mark.metric for mark in task.marks], [*METRICS, *told, *topics])
    if submission == CLASS and not kind.environment:
        raise TaskError(f"{file}: there is no environment of {kind.emulator.name} for a class.")
    if submission != CLASS and (complaint := _complaint(kind, task.options)):
        raise TaskError(f"{file}: the options are refused: {complaint}")
    return task


def has_end(kind: ProtocolKind) -> bool:
    """Return whether the emulator tells how a flight ended."""
    return bool(kind.demonstration and load(kind.demonstration).flights)


def _complaint(kind: ProtocolKind, options: Mapping[str, Any]) -> str:
    """Return why the emulator refuses options, or nothing."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            load(f"{kind.emulator.main.partition(':')[0]}:parse")(Program.words(options))
        except SystemExit:
            return said.getvalue().strip().splitlines()[-1]
    return ""


def _allow(what: str, given: Any, allowed: Any) -> None:
    """Raise TaskError for the first that is not allowed."""
    for each in given:
        if each not in allowed:
            raise TaskError(f"{what} is {each!r}; allowed are {', '.join(sorted(allowed))}.")


def _places(value: Any, size: int) -> tuple[Numbers, ...]:
    found = tuple(tuple(map(float, each)) for each in value)
    if any(len(each) != size or not all(map(math.isfinite, each)) for each in found):
        raise TaskError(f"{value} has to be a list of {size} finite numbers each.")
    return found
