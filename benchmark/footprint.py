# SPDX-License-Identifier: Apache-2.0
"""What each idle bridge costs, compared with a bare rclpy node: python benchmark/footprint.py.

Memory and the time to start; see README.md.
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
from system import HERE, script_command
from table import spread

from drone_bridge.kind import kinds

MEBIBYTE = 1024 * 1024
START_TIMEOUT_S = 30.0
SETTLE_S = 1.0  # for background work after the start, such as discovery
PROTOCOLS = tuple(kinds())
#: What a bridge may cost beyond the bare node.
MAX_MEBIBYTES = 8.0
MAX_START_S = 0.15


@dataclass(frozen=True, slots=True)
class Footprint:
    """Cost of one start of a program."""

    start_s: float  # from exec to configured
    resident_mebibytes: float
    private_mebibytes: float  # not shared with other processes
    interface: str = ""  # of a bridge


def programs() -> dict[str, str]:
    """Return what each bridge's executable runs, and the bare node."""
    setup = ConfigParser()
    setup.read(HERE.parent / "setup.cfg")
    executables = dict(
        line.replace(" ", "").split("=")
        for line in setup["options.entry_points"]["drone_bridge.nodes"].split("\n")
        if line
    )
    return {BARE: BARE} | {name: executables[f"{name}_bridge"] for name in PROTOCOLS}


def measure(name: str, program: str, scratch: Path) -> Footprint:
    """Start a program, let it settle, look at its memory, and stop it."""
    arguments = ["--ros-args", "-p", "port:=9", "-p", "host:=127.0.0.1"] if ":" in program else []
    command = script_command("footprint_subject.py", repr(time.monotonic()), program, *arguments)
    child = Child(name, command, random.choice(DOMAINS), scratch)
    try:
        start_s = float(child.wait_for_line(0, START_TIMEOUT_S))
        time.sleep(SETTLE_S)
        interface = child.lines[1] if len(child.lines) > 1 else ""
        return Footprint(start_s, child.resident_bytes() / MEBIBYTE, child.private_bytes() / MEBIBYTE, interface)
    finally:
        child.stop()


def measure_all(scratch: Path) -> dict[str, tuple[Footprint, Footprint]]:
    """Measure each bridge, and with it a node that has the same topics and services; and the bare node."""
    measured = {}
    for name, program in programs().items():
        footprint = measure(name, program, scratch)
        twin = measure(f"{name}'s interface", footprint.interface, scratch) if footprint.interface else footprint
        measured[name] = footprint, twin
    return measured


def render(rounds: list[dict[str, tuple[Footprint, Footprint]]]) -> str:
    """Return the table: medians, and what was more than the bare node took in the same round."""
    rows = [("", "resident (MiB)", "more", "", "more than its interface", "private (MiB)", "start (s)", "later", "")]
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
        resident, private, start = spread(cells["resident"], 1), spread(cells["private"], 1), spread(cells["start"], 2)
        if name == BARE:
            rows.append((name, resident, "", "", "", private, start, "", ""))
            continue
        memory, delay = _verdict(cells["more"], MAX_MEBIBYTES), _verdict(cells["later"], MAX_START_S)
        more, program = spread(cells["more"], 1), spread(cells["program"], 1)
        rows.append((name, resident, more, memory, program, private, start, spread(cells["later"], 2), delay))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main() -> int:
    """Measure all, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each program is started (default 5)")
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
        f"{platform.python_version()}. Aims: at most {MAX_MEBIBYTES:g} MiB resident and {MAX_START_S:g} s more than "
        f"the bare node. Its interface: a lifecycle node with the same topics and services, and no program.\n\n"
        f"{render(rounds)}"
    )
    return 0


def _verdict(values: list[float], limit: float) -> str:
    return "met" if median(values) <= limit else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
