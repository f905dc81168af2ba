# SPDX-License-Identifier: Apache-2.0
"""Many seeded landings on a rover, for each of its patterns, through topics.

Every other drone starts on the ground, 1 to 3 m from the rover.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress

PATTERNS: Final = ("stationary", "linear", "circular", "square", "random")
ENOUGH: Final = 0.95  # of the landings of a pattern
LONGEST_FLIGHT_S: Final = 60.0
LONGEST_WAIT_S: Final = 90.0
#: In turn: 5 m up, often with the rover in view, or on the ground, where it has to be searched for.
STARTS: Final = ("air", "ground")
START_TIMEOUT_S: Final = 30.0
TOUCHDOWN: Final = re.compile(
    r"touchdown on the (?P<where>rover|ground) at t=(?P<time>[\d.]+) s: position error (?P<error>[\d.]+) m, "
    r"vertical speed (?P<vertical>[\d.]+) m/s, relative speed (?P<relative>[\d.]+) m/s, (?P<verdict>good|bad)"
)


class Landing(NamedTuple):
    """How a drone came down for the first time."""

    is_good: bool
    time_s: float  # since the emulator started
    error_m: float  # from the pad's centre
    vertical_speed: float  # m/s
    relative_speed: float  # m/s, across the pad


class Task(NamedTuple):
    """A landing to be tried."""

    pattern: str
    seed: int


def show(landings: int, at_once: int, use_camera: bool) -> int:
    """Try that many landings per pattern, print the table, and return 0 if enough of each were good.

    `at_once` compositions work at the same time, each in a ROS domain of its own, and each on one drone after the
    other. With `use_camera` pads are found in images alone.
    """
    compositions = []
    ports: set[int] = set()
    while len(ports) < at_once:
        ports.add(free_port())
    with tempfile.TemporaryDirectory() as folder, Progress(total=landings * len(PATTERNS)) as progress:
        rounds = _Landings((Task(pattern, seed) for seed in range(landings) for pattern in PATTERNS), progress)
        try:
            for port in ports:
                compositions.append((_compose(port, Path(folder, f"{port}.txt"), use_camera), port))
            workers = [
                threading.Thread(target=rounds.work, args=(composition, port), name=f"landings {port}")
                for composition, port in compositions
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            rounds.stop()
            for composition, _ in compositions:
                composition.stop()
    return report(landings, rounds.results)


def _compose(port: int, log: Path, use_camera: bool) -> Composition:
    """Start bridge and controller, which stay up; the drones connect one after the other."""
    taken = os.environ.get("ROS_DOMAIN_ID")
    while os.environ.get("ROS_DOMAIN_ID") == taken:
        isolate_ros_graph()
    composition = Composition("landing.launch.xml", log, control=True, telemetry_port=port, use_camera=use_camera)
    if not (
        composition.wait_for("Waiting for telemetry", START_TIMEOUT_S)
        and composition.wait_for("land_on_pad is ready", START_TIMEOUT_S)
    ):
        composition.stop()
        raise RuntimeError(f"Bridge and controller did not start:\n{composition.tail()}")
    return composition


class _Landings:
    """The landings still to be tried and their results, shared by threads that each have a composition."""

    def __init__(self, tasks: Iterable[Task], progress: Progress) -> None:
        self._progress = progress
        self.results: dict[Task, Landing | None] = {}
        self._tasks = deque(tasks)
        self._flying: set[subprocess.Popen[str]] = set()

    def work(self, composition: Composition, port: int) -> None:
        """Try one after the other for as long as the composition lasts."""
        while composition.is_running:
            try:
                task = self._tasks.popleft()
            except IndexError:
                return
            self.results[task], summary = self._land(task, port)
            self._progress.show(f"{task.pattern}, seed {task.seed}: {summary}", len(self.results))

    def stop(self) -> None:
        """Try nothing more, and interrupt the landings under way."""
        self._tasks.clear()
        for process in tuple(self._flying):
            process.send_signal(signal.SIGINT)

    def _land(self, task: Task, port: int) -> tuple[Landing | None, str]:
        """Return how the drone came down, None if it did not, and a summary."""
        process = subprocess.Popen(
            [sys.executable, "-m", "drone_bridge.telemetry.emulator", *_options(task, port)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._flying.add(process)
        stopper = threading.Timer(LONGEST_WAIT_S, process.send_signal, (signal.SIGINT,))
        stopper.start()
        landing, summary = None, "no touchdown"
        assert process.stdout is not None
        for line in process.stdout:
            if (found := TOUCHDOWN.search(line)) and landing is None:
                numbers = (float(found[name]) for name in ("time", "error", "vertical", "relative"))
                landing, summary = Landing(found["verdict"] == "good", *numbers), found[0]
                if not landing.is_good:
                    process.send_signal(signal.SIGINT)  # the first touchdown counts
        process.wait()
        stopper.cancel()
        self._flying.discard(process)
        return landing, summary


def _options(task: Task, port: int) -> list[str]:
    options = f"--port {port} --rover {task.pattern} --seed {task.seed} --start {STARTS[task.seed % len(STARTS)]}"
    return [*options.split(), "--duration", str(LONGEST_FLIGHT_S), "--until-landed"]


def report(landings: int, results: dict[Task, Landing | None]) -> int:
    """Print the table; return the exit status."""
    print(
        f"\n{'':12}{'good':>10}  {'off centre (m)':>18}  {'across the pad (m/s)':>20}  {'downwards (m/s)':>15}  "
        f"{'touchdown after (s)':>19}"
    )
    print(f"{'':24}" + "".join(f"{'mean':>{width}} {'worst':>6}  " for width in (11, 13, 8, 12)).rstrip())
    is_enough = True
    for pattern in PATTERNS:
        landed = [results.get(Task(pattern, seed)) for seed in range(landings)]
        good = sum(landing is not None and landing.is_good for landing in landed)
        is_enough &= good >= ENOUGH * landings
        down = np.array([landing[1:] for landing in landed if landing])
        cells = ""
        if len(down):
            time_s, error_m, vertical, relative = ((column.mean(), column.max()) for column in down.T)
            for (mean, worst), width, digits in (
                (error_m, 11, 2),
                (relative, 13, 2),
                (vertical, 8, 2),
                (time_s, 12, 1),
            ):
                cells += f"{mean:{width}.{digits}f} {worst:6.{digits}f}  "
        print(f"{pattern:12}{f'{good} of {landings}':>10}  {cells}".rstrip())
    return 0 if is_enough else 1
