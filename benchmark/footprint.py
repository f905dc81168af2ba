# SPDX-License-Identifier: Apache-2.0
"""Cost of each idle bridge and the page, compared with a bare rclpy node: python benchmark/footprint.py.

It measures memory, start time, and CPU at rest; see README.md.
"""

import argparse
import os
import platform
import random
import sys
import tempfile
import time
from collections import defaultdict
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from children import Child, ChildError
from domains import DOMAINS
from footprint_subject import BARE
from system import HERE, free_port, script_command
from table import spread

from drone_bridge.kind import kinds

MEBIBYTE = 1024 * 1024
START_TIMEOUT_S = 30.0
SETTLE_S = 1.0  # for background work after the start, such as discovery
REST_S = 5.0  # after that
PROTOCOLS = tuple(kinds())
WEB = "web"
#: Limits of a bridge's cost beyond the bare node.
MAX_MEBIBYTES = 8.0
MAX_START_S = 0.15
#: CPU limits at rest, % of one core, of a bridge that sends nothing, and of the page without viewers.
MAX_REST_PERCENT, MAX_REST_OF_WEB_PERCENT = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class Footprint:
    """Cost of one start of a program."""

    start_s: float  # from exec to ready to spin
    resident_mebibytes: float
    private_mebibytes: float  # not shared with other processes
    rest_percent: float  # of one core
    interface: str = ""  # of a bridge


def programs() -> dict[str, str]:
    """Return the program of each bridge's executable and of the page, and the bare node."""
    setup = ConfigParser()
    setup.read(HERE.parent / "setup.cfg")
    executables = dict(
        line.replace(" ", "").split("=")
        for line in setup["options.entry_points"]["drone_bridge.nodes"].split("\n")
        if line
    )
    return {BARE: BARE} | {name: executables[f"{name}_bridge"] for name in (*PROTOCOLS, WEB)}


def measure(name: str, program: str, scratch: Path) -> Footprint:
    """Start a program, let it settle, measure its memory, and stop it."""
    arguments = ["--ros-args", "-p", f"port:={free_port()}", "-p", "host:=127.0.0.1"] if ":" in program else []
    command = script_command("footprint_subject.py", repr(time.monotonic()), program, *arguments)
    child = Child(name, command, random.choice(DOMAINS), scratch)
    try:
        first = int(name == WEB)  # after the page's link
        start_s = float(child.wait_for_line(first, START_TIMEOUT_S))
        time.sleep(SETTLE_S)
        interface = child.lines[first + 1] if len(child.lines) > first + 1 else ""
        resident, private = child.resident_bytes() / MEBIBYTE, child.private_bytes() / MEBIBYTE
        began_s, cpu_s = time.monotonic(), child.cpu_s()
        time.sleep(REST_S)
        rest_percent = 100 * (child.cpu_s() - cpu_s) / (time.monotonic() - began_s)
        return Footprint(start_s, resident, private, rest_percent, interface)
    finally:
        child.stop()


def measure_all(scratch: Path) -> dict[str, tuple[Footprint, Footprint]]:
    """Measure each bridge with a node that has the same topics and services; and the bare node."""
    measured = {}
    for name, program in programs().items():
        footprint = measure(name, program, scratch)
        twin = measure(f"{name}'s interface", footprint.interface, scratch) if footprint.interface else footprint
        measured[name] = footprint, twin
    return measured


def render(rounds: list[dict[str, tuple[Footprint, Footprint]]]) -> str:
    """Return the table: medians, and the differences to the bare node in the same round."""
    head = ("", "resident (MiB)", "more", "", "more than its interface", "private (MiB)", "start (s)", "later", "")
    rows = [(*head, "CPU at rest (%)", "more", "")]
    for name in rounds[0]:
        cells: dict[str, list[float]] = defaultdict(list)
        for measured in rounds:
            (ours, twin), (bare, _) = measured[name], measured[BARE]
            cells["resident"].append(ours.resident_mebibytes)
            cells["more"].append(ours.resident_mebibytes - bare.resident_mebibytes)
            cells["program"].append(ours.resident_mebibytes - twin.resident_mebibytes)
            cells["private"].append(ours.private_mebibytes)
            cells["start"].append(ours.start_s)
            cells["later"].append(ours.start_s - bare.start_s)
            cells["rest"].append(ours.rest_percent)
            cells["more_rest"].append(ours.rest_percent - bare.rest_percent)
        resident, private, start = spread(cells["resident"], 1), spread(cells["private"], 1), spread(cells["start"], 2)
        rest = spread(cells["rest"], 2)
        if name == BARE:
            rows.append((name, resident, "", "", "", private, start, "", "", rest, "", ""))
            continue
        memory, delay = _verdict(cells["more"], MAX_MEBIBYTES), _verdict(cells["later"], MAX_START_S)
        more, program = spread(cells["more"], 1), spread(cells["program"], 1)
        quiet = _verdict(cells["more_rest"], MAX_REST_OF_WEB_PERCENT if name == WEB else MAX_REST_PERCENT)
        later, more_rest = spread(cells["later"], 2), spread(cells["more_rest"], 2)
        rows.append((name, resident, more, memory, program, private, start, later, delay, rest, more_rest, quiet))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main() -> int:
    """Measure all programs in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="number of starts of each program (default 5)")
    options = parser.parse_args()
    rounds: list[dict[str, tuple[Footprint, Footprint]]] = []
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", flush=True)
                rounds.append(measure_all(Path(scratch)))
    except ChildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(
        f"\n{options.rounds} starts of each in turns, on {os.cpu_count()} cores of {platform.machine()}, Python "
        f"{platform.python_version()}. Aims, beyond the bare node: at most {MAX_MEBIBYTES:g} MiB resident, "
        f"{MAX_START_S:g} s to start, {MAX_REST_PERCENT:g} % of a core at rest, {MAX_REST_OF_WEB_PERCENT:g} % for the "
        "page without viewers. Its interface: a lifecycle node with the same topics and services, and no program.\n\n"
        f"{render(rounds)}"
    )
    return 0


def _verdict(values: list[float], limit: float) -> str:
    return "met" if median(values) <= limit else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
