# SPDX-License-Identifier: Apache-2.0
"""Flights to targets: emulator, bridge and controller for one drone or a fleet, then bag, picture and report."""

import contextlib
import random
import re
import shutil
import socket
import sys
import time
from pathlib import Path

from drone_bridge.kind import ProtocolKind, load
from drone_bridge.programs.demonstration import Demonstration, Flights
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of
from drone_bridge.tools.demo.picture import Flight, draw
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.way import read_rows
from drone_bridge.tools.reporting.command import write_report

STATUS_PERIOD_S = 0.2
#: Of wall time, after the last target was reached.
LINGER_S = 3.0
TIMEOUT_S = 180.0


def show_flight(kind: ProtocolKind, folder: Path) -> int:
    """Fly to a target, print a status line and a table, write into the folder; return the exit status."""
    flights = _prepare(kind, folder)
    print(flights.story, flush=True)
    name, trajectory = kind.emulator.name, folder / "trajectory.csv"
    arguments = {
        **{port: free_port() for port in ports_of(kind.launch_file)},
        **dict.fromkeys(("emulate", "control", "record"), True),
        **{"bag": folder / "bag", "compression": "zstd", "stamp_source": "wire", f"{name}_trajectory": trajectory},
        **flights.arguments,
    }
    composition = Composition(kind.launch_file, folder / "log.txt", **arguments)
    if not _wait(composition, flights.done, folder):
        return 1
    ended = composition.matches(flights.done)[0]
    flight = _read(kind, trajectory, name, flights.seed, float(ended["time"]))
    draw(folder / flights.picture, [flight], folder / "bag")
    results = {
        "target at the start": f"{flight.distances_m[0]:.2f} m away",
        "flown": f"{flight.flown_m:.1f} m",
        **{heading: ended[column] for column, heading in flights.columns.items()},
        "picture": folder / flights.picture,
        "recorded": folder / "bag",
        "report": write_report(folder / "bag", folder / "report.html"),
    }
    for what, result in results.items():
        print(f"  {what:20} {result}")
    return 1 if ended.groupdict().get("verdict") == "bad" else 0


def show_fleet(kind: ProtocolKind, folder: Path, drones: int) -> int:
    """Fly drones to their targets in one process, print a table, write into the folder; return the exit status."""
    flights = _prepare(kind, folder)
    file = folder / "fleet.yaml"
    entry = flights.fleet.format(drones=drones, port=_free_ports(drones), last=drones, folder=folder.resolve())
    file.write_text(f"# Run them again with: drone-bridge fleet {file}\nvehicles:\n{entry}")
    print(f"{drones} drones look for their targets. All bridges and controllers are in one process.", flush=True)
    composition = Composition("fleet.launch.xml", folder / "log.txt", fleet_file=file.resolve())
    done = re.compile(rf"\[drone(?P<number>\d+) emulator\] {flights.done.pattern}")
    if not _wait(composition, done, folder, drones):
        return 1
    flown = []
    for ended in sorted(composition.matches(done), key=lambda ended: int(ended["number"])):
        number = int(ended["number"])
        flight = _read(kind, folder / f"drone{number}.csv", f"drone{number}", number, float(ended["time"]))
        flown.append(flight)
        print(
            f"  {flight.name:8} target {flight.distances_m[0]:5.2f} m away, reached after {flight.reached_s:5.2f} s "
            f"simulated, {flight.flown_m:5.1f} m flown"
        )
    draw(folder / "fleet.png", flown)
    print(f"  picture  {folder / 'fleet.png'}")
    return 0


def _prepare(kind: ProtocolKind, folder: Path) -> Flights:
    """Isolate the ROS graph and empty the folder. Raises OSError where it can't be emptied or created."""
    isolate_ros_graph()
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    flights: Flights = load(kind.demonstration).flights
    return flights


def _read(kind: ProtocolKind, trajectory: Path, name: str, seed: int, reached_s: float) -> Flight:
    demonstration: Demonstration = load(kind.demonstration)
    assert demonstration.flights
    rows = read_rows(trajectory)
    positions = [demonstration.pose(row)[:3] for row in rows]
    return Flight(
        name, [float(row["time"]) for row in rows], positions, demonstration.flights.targets(seed, rows), reached_s
    )


def _wait(composition: Composition, done: re.Pattern[str], folder: Path, count: int = 1) -> bool:
    """Show the last line until the output matches so often, and some more; stop, and return whether all went well."""
    end_s = time.monotonic() + TIMEOUT_S
    is_over = False
    try:
        with Progress() as progress:
            while time.monotonic() < end_s and not composition.has_failed:
                progress.show(composition.tail(1).strip())
                if not is_over and len(composition.matches(done)) >= count:
                    is_over, end_s = True, time.monotonic() + LINGER_S
                time.sleep(STATUS_PERIOD_S)
    finally:
        ended_well = composition.stop()
    if is_over and ended_well:
        return True
    print(composition.tail(), file=sys.stderr)
    arrived = len(composition.matches(done))
    what = "not every process exited cleanly" if is_over else f"{arrived} of {count} reached their targets"
    print(f"The flight failed: {what}; the complete output is in {folder / 'log.txt'}.", file=sys.stderr)
    return False


def _free_ports(count: int) -> int:
    """Return the first of so many free TCP ports in a row. Raises OSError when there are none."""
    for first in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError(f"There are no {count} free ports in a row.")
