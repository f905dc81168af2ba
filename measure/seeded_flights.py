# SPDX-License-Identifier: Apache-2.0
"""Seeded flights of an emulator under several conditions, through topics; and a table of the results.

Bridge and controller of a condition keep running. Its emulators connect one at a time.
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

from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of

START_TIMEOUT_S = 60.0
LONGEST_WAIT_S = 90.0  # wall time
#: Output of the emulators at the end of each flight, by condition, in the order of their seeds.
Results = Mapping[str, Sequence[re.Match[str] | None]]


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of flights."""

    options: Callable[[int], str]
    """Options of the emulator, by the seed of the flight"""
    arguments: Mapping[str, object]
    """Arguments of the launch file"""


@dataclass(frozen=True, slots=True)
class Flights:
    """Flights whose end the emulator prints."""

    launch_file: str
    emulator: str
    conditions: Mapping[str, Condition]
    ended: re.Pattern[str]
    """Output at the end of a flight. The group `verdict`, if any, is good or bad"""
    columns: Mapping[str, str]
    """Headings of the numeric groups of `ended`"""
    ready: Sequence[str]
    """Output of bridge and controller when they are ready"""
    at_once: int
    """Number of concurrent conditions, each in its own ROS domain"""


def fly(flights: Flights, count: int) -> int:
    """Fly the seeds below `count` under each condition, and print the table; return 1 if a vehicle did not stop."""
    results: dict[str, list[re.Match[str] | None]] = {name: [] for name in flights.conditions}
    starting = threading.Lock()

    def fly_all(name: str) -> None:
        condition = flights.conditions[name]
        with starting:
            ports = {argument: free_port() for argument in ports_of(flights.launch_file)}
            composition = _compose(flights, condition, ports, Path(folder, f"{name}.txt"))
        try:
            for seed in range(count):
                # The first port of a launch file is the protocol's.
                found = _fly_once(flights, f"--port {next(iter(ports.values()))} {condition.options(seed)}")
                results[name].append(found)
                print(f"{name}, seed {seed}: {found[0] if found else 'did not end'}", flush=True)
        finally:
            composition.stop()

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(flights.at_once) as pool:
        list(pool.map(fly_all, flights.conditions))
    print("\n".join(table(flights, count, results)))
    found = [each for all_found in results.values() for each in all_found]
    print(f"{sum(map(_is_good, found))} of {len(found)} flights are good, {found.count(None)} did not end")
    return int(None in found)


def table(flights: Flights, count: int, results: Results) -> list[str]:
    """Return the lines of the table: good flights of each condition, and mean and worst of each column."""
    headings = "".join(f"{heading:21}" for heading in flights.columns.values())
    lines = [f"{'mean (worst)':12}{'good':>10}  {headings}".rstrip()]
    for name, all_found in results.items():
        ended = [found for found in all_found if found]
        good = sum(map(_is_good, ended))
        columns = (np.array([float(found[group]) for found in ended] or [np.nan]) for group in flights.columns)
        cells = "".join(f"{f'{column.mean():.2f} ({column.max():.2f})':21}" for column in columns)
        lines.append(f"{name:12}{f'{good} of {count}':>10}  {cells}".rstrip())
    return lines


def _is_good(found: re.Match[str] | None) -> bool:
    return found is not None and found.groupdict().get("verdict") != "bad"


def _compose(flights: Flights, condition: Condition, ports: Mapping[str, int], log: Path) -> Composition:
    """Start bridge and controller. Raises RuntimeError if they don't start."""
    taken = os.environ.get("ROS_DOMAIN_ID")
    while os.environ.get("ROS_DOMAIN_ID") == taken:
        isolate_ros_graph()
    composition = Composition(flights.launch_file, log, control=True, **ports, **condition.arguments)
    if not all(composition.wait_for(each, START_TIMEOUT_S) for each in flights.ready):
        composition.stop()
        raise RuntimeError(f"Bridge and controller did not start:\n{composition.tail()}")
    return composition


def _fly_once(flights: Flights, options: str) -> re.Match[str] | None:
    """Run an emulator to its end, and return its first output about the end of the flight."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "drone_bridge.tools.cli", "emulate", flights.emulator, *options.split()],
            stdout=subprocess.PIPE,
            text=True,
            timeout=LONGEST_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return flights.ended.search((late.stdout or b"").decode())
    return flights.ended.search(ran.stdout)
