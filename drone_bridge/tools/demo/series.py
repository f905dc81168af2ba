# SPDX-License-Identifier: Apache-2.0
"""Series of seeded flights under several conditions, through topics, and tables of how well they went.

Bridge and controller of a condition stay up; its emulators connect one after the other.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drone_bridge.testbed.emulator.world import World
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress

ENOUGH = 0.95  # of the flights of a condition
START_TIMEOUT_S = 30.0
LONGEST_WAIT_S = 90.0  # wall time
# What emulators say.
REACHED = re.compile(r"target reached at t=(?P<time>[\d.]+) s")
TOUCHDOWN = re.compile(
    r"touchdown on the (?P<where>rover|ground) at t=(?P<time>[\d.]+) s: position error (?P<error>[\d.]+) m, "
    r"vertical speed (?P<vertical>[\d.]+) m/s, relative speed (?P<relative>[\d.]+) m/s, (?P<verdict>good|bad)"
)
# In lockstep each frame waits for its reply, so the testbed need not keep to wall time.
MODES = {"latest": "--realtime", "lockstep": "--fast"}
PATTERNS = ("stationary", "linear", "circular", "square", "random")
#: In turn: 5 m up, often with the rover in view, or on the ground, where it has to be searched for.
STARTS = ("air", "ground")
#: What the emulators said of the flights, by condition, in the order of their seeds.
Results = Mapping[str, Sequence[re.Match[str] | None]]


@dataclass(frozen=True, slots=True)
class Condition:
    """Bridge and controller by a launch file, and an emulator that flies once per seed."""

    name: str
    launch_file: str
    port: str
    """The launch argument of the port"""
    arguments: Mapping[str, object]
    ready: tuple[str, ...]
    """What their output matches once they are ready"""
    emulator: Callable[[int, int], str]
    """Module and options, by seed and port"""


def show_worlds(worlds: int) -> int:
    """Fly in every world and mode, print the table, and return 0 if enough targets were reached."""
    conditions = [
        Condition(
            mode,
            "testbed.launch.xml",
            "testbed_port",
            {"testbed_bridge_role": "listen", "testbed_sync": mode, "stamp_source": "wire"},
            ("Waiting for a peer",),
            lambda seed, port, pace=pace: (  # type: ignore[misc]
                f"drone_bridge.testbed.emulator --role connect --port {port} --seed {seed} {pace} --once "
                "--until-reached --duration 40"
            ),
        )
        for mode, pace in MODES.items()
    ]
    results = fly(conditions, worlds, 1, REACHED)
    print(f"\n{'seed':>4}  {'target at':>9}  " + "  ".join(f"{mode:>10}" for mode in MODES))
    for seed in range(worlds):
        distance_m = float(np.linalg.norm(World.random(seed).targets[0].centre))
        flights = (results[mode][seed] for mode in MODES)
        cells = "  ".join(f"{found['time'] + ' s' if found else 'missed':>10}" for found in flights)
        print(f"{seed:>4}  {distance_m:>7.2f} m  {cells}")
    reached = [sum(found is not None for found in results[mode]) for mode in MODES]
    print("reached         " + "  ".join(f"{f'{count} of {worlds}':>10}" for count in reached))
    return 0 if all(count >= ENOUGH * worlds for count in reached) else 1


def show_landings(landings: int, at_once: int, use_camera: bool) -> int:
    """Land so often on each pattern of a rover, print the table, and return 0 if enough of each were good.

    With `use_camera` pads are found in images alone. The first touchdown of a flight counts.
    """
    conditions = [
        Condition(
            pattern,
            "landing.launch.xml",
            "telemetry_port",
            {"use_camera": use_camera},
            ("Waiting for telemetry", "land_on_pad is ready"),
            lambda seed, port, pattern=pattern: (  # type: ignore[misc]
                f"drone_bridge.telemetry.emulator --port {port} --rover {pattern} --seed {seed} "
                f"--start {STARTS[seed % len(STARTS)]} --duration 60 --until-landed"
            ),
        )
        for pattern in PATTERNS
    ]
    return report_landings(landings, fly(conditions, landings, at_once, TOUCHDOWN))


def report_landings(landings: int, results: Results) -> int:
    """Print the table; return the exit status."""
    print(f"\n{'mean (worst)':12}{'good':>10}  off centre (m)  across (m/s)    downwards (m/s)  touchdown after (s)")
    is_enough = True
    for pattern, all_found in results.items():
        touchdowns = [found for found in all_found if found]
        good = sum(found["verdict"] == "good" for found in touchdowns)
        is_enough &= good >= ENOUGH * landings
        columns = (np.array([float(found[name]) for found in touchdowns] or [np.nan]) for name in _COLUMNS)
        cells = "".join(f"{f'{column.mean():.2f} ({column.max():.2f})':16}" for column in columns)
        print(f"{pattern:12}{f'{good} of {landings}':>10}  {cells}".rstrip())
    return 0 if is_enough else 1


_COLUMNS = ("error", "relative", "vertical", "time")


def fly(conditions: Sequence[Condition], seeds: int, at_once: int, pattern: re.Pattern[str]) -> Results:
    """Fly every seed under every condition; return the first match in each emulator's output.

    `at_once` conditions are flown at the same time, each in a ROS domain of its own.
    """
    total = seeds * len(conditions)
    results: dict[str, list[re.Match[str] | None]] = {condition.name: [] for condition in conditions}
    starting = threading.Lock()

    def fly_all(condition: Condition) -> None:
        with starting:
            port = free_port()
            composition = _compose(condition, port, Path(folder, f"{condition.name}.txt"))
        try:
            for seed in range(seeds):
                if not composition.is_running:  # interrupted, as we are
                    return
                found = _fly_once(condition.emulator(seed, port), pattern)
                results[condition.name].append(found)
                done = sum(map(len, results.values()))
                summary = found[0] if found else "nothing"
                progress.show(f"{done} of {total}: {condition.name}, seed {seed}: {summary}")
        finally:
            composition.stop()

    with tempfile.TemporaryDirectory() as folder, Progress() as progress, ThreadPoolExecutor(at_once) as pool:
        list(pool.map(fly_all, conditions))
    return results


def _compose(condition: Condition, port: int, log: Path) -> Composition:
    """Start bridge and controller. Raises RuntimeError when they don't start."""
    taken = os.environ.get("ROS_DOMAIN_ID")
    while os.environ.get("ROS_DOMAIN_ID") == taken:
        isolate_ros_graph()
    given = {condition.port: port, **condition.arguments}
    composition = Composition(condition.launch_file, log, control=True, **given)
    if not all(composition.wait_for(each, START_TIMEOUT_S) for each in condition.ready):
        composition.stop()
        raise RuntimeError(f"Bridge and controller did not start:\n{composition.tail()}")
    return composition


def _fly_once(emulator: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Run an emulator to its end, and return what it said first of what is looked for."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", *emulator.split()],
            stdout=subprocess.PIPE,
            text=True,
            timeout=LONGEST_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return pattern.search((late.stdout or b"").decode())
    return pattern.search(ran.stdout)
