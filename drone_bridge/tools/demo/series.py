# SPDX-License-Identifier: Apache-2.0
"""Series of seeded flights under several conditions, through topics, and a table of how well they went.

Bridge and controller of a condition stay up; its emulators connect one after the other.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from drone_bridge.kind import ProtocolKind, load
from drone_bridge.programs.demonstration import Condition, Flights
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of
from drone_bridge.tools.demo.progress import Progress

ENOUGH = 0.95  # of the flights of a condition
START_TIMEOUT_S = 30.0
LONGEST_WAIT_S = 90.0  # wall time
#: What the emulators said of the flights, by condition, in the order of their seeds.
Results = Mapping[str, Sequence[re.Match[str] | None]]


def show_series(kind: ProtocolKind, count: int, at_once: int | None, arguments: Mapping[str, object]) -> int:
    """Fly so often under each condition, print the table, and return 0 if enough of each were good.

    `arguments` are further ones of the launch file, for all conditions.
    """
    flights: Flights = load(kind.demonstration).flights
    conditions = {
        name: replace(condition, arguments={**arguments, **condition.arguments})
        for name, condition in flights.conditions.items()
    }
    results = fly(kind, replace(flights, conditions=conditions), count, at_once or flights.at_once)
    return report(flights, count, results)


def report(flights: Flights, count: int, results: Results) -> int:
    """Print the table; return the exit status."""
    headings = "".join(f"{heading:21}" for heading in flights.columns.values())
    print(f"\n{'mean (worst)':12}{'good':>10}  {headings}".rstrip())
    is_enough = True
    for name, all_found in results.items():
        ended = [found for found in all_found if found]
        good = sum(found.groupdict().get("verdict") != "bad" for found in ended)
        is_enough &= good >= ENOUGH * count
        columns = (np.array([float(found[group]) for found in ended] or [np.nan]) for group in flights.columns)
        cells = "".join(f"{f'{column.mean():.2f} ({column.max():.2f})':21}" for column in columns)
        print(f"{name:12}{f'{good} of {count}':>10}  {cells}".rstrip())
    return 0 if is_enough else 1


def fly(kind: ProtocolKind, flights: Flights, seeds: int, at_once: int) -> Results:
    """Fly every seed under every condition; return the first match in each emulator's output.

    `at_once` conditions are flown at the same time, each in a ROS domain of its own.
    """
    total = seeds * len(flights.conditions)
    results: dict[str, list[re.Match[str] | None]] = {name: [] for name in flights.conditions}
    starting = threading.Lock()

    def fly_all(name: str) -> None:
        condition = flights.conditions[name]
        with starting:
            ports = {argument: free_port() for argument in ports_of(kind.launch_file)}
            composition = _compose(kind, flights, condition, ports, Path(folder, f"{name}.txt"))
        try:
            for seed in range(seeds):
                if not composition.is_running:  # interrupted, as we are
                    return
                # The first port of a launch file is the conversation's.
                found = _fly_once(kind, f"--port {next(iter(ports.values()))} {condition.options(seed)}", flights.done)
                results[name].append(found)
                done = sum(map(len, results.values()))
                progress.show(f"{done} of {total}: {name}, seed {seed}: {found[0] if found else 'nothing'}")
        finally:
            composition.stop()

    with tempfile.TemporaryDirectory() as folder, Progress() as progress, ThreadPoolExecutor(at_once) as pool:
        list(pool.map(fly_all, flights.conditions))
    return results


def _compose(
    kind: ProtocolKind, flights: Flights, condition: Condition, ports: Mapping[str, int], log: Path
) -> Composition:
    """Start bridge and controller. Raises RuntimeError when they don't start."""
    taken = os.environ.get("ROS_DOMAIN_ID")
    while os.environ.get("ROS_DOMAIN_ID") == taken:
        isolate_ros_graph()
    composition = Composition(kind.launch_file, log, control=True, **ports, **condition.arguments)
    if not all(composition.wait_for(each, START_TIMEOUT_S) for each in flights.ready):
        composition.stop()
        raise RuntimeError(f"Bridge and controller did not start:\n{composition.tail()}")
    return composition


def _fly_once(kind: ProtocolKind, options: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Run an emulator to its end, and return what it said first of what is looked for."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "drone_bridge.tools.cli", "emulate", kind.emulator.name, *options.split()],
            stdout=subprocess.PIPE,
            text=True,
            timeout=LONGEST_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return pattern.search((late.stdout or b"").decode())
    return pattern.search(ran.stdout)
