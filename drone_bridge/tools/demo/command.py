# SPDX-License-Identifier: Apache-2.0
"""drone-bridge demo: an emulated flight through its launch file, recorded, with a report."""

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from drone_bridge.programs.options import known
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.launch.substitutions import package_prefix
from drone_bridge.tools.shared import suspend_key

STATUS_PERIOD_S = 0.2
#: Wall time recorded after the end of the flight.
LINGER_S = 3.0
TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Demonstration flight, from a file in config/demo."""

    story: str
    folder: str
    launch_file: str
    arguments: Mapping[str, object]
    ended: str
    """Pattern of the emulator's output at the end; a match of its optional group `bad` means failure"""


def main(argv: Sequence[str]) -> int:
    """Fly the demonstration named in `argv`. Return the exit status."""
    shared = package_prefix("drone_bridge") / "share" / "drone_bridge" / "config" / "demo"
    flights = {path.stem: path for path in sorted(shared.glob("*.yaml"))}
    parser = CommandParser(prog="drone-bridge demo", description=__doc__)
    parser.add_argument("flight", type=known(flights), help=f"one of {', '.join(flights)}")
    parser.add_argument(
        "--folder", type=Path, help="for bag, report and log, emptied first (demo, or demo/ and the name)"
    )
    chosen = parser.parse_args(argv)
    demonstration = Demonstration(**yaml.safe_load(flights[chosen.flight].read_text()))
    try:
        return show(demonstration, chosen.folder or Path(demonstration.folder))
    except OSError as error:
        if error.filename is None:  # not about a file
            raise
        print(f"drone-bridge demo: '{error.filename}': {error.strerror}.", file=sys.stderr)
        return REFUSED


def show(demonstration: Demonstration, folder: Path) -> int:
    """Fly, and write the results into a folder. Return 0 on success. Raises OSError if the folder is not writable."""
    from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of
    from drone_bridge.tools.report.command import write_report

    isolate_ros_graph()
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    bag, log = folder / "bag", folder / "log.txt"
    print(f"{demonstration.story}\nIt takes about half a minute. The log is {log}.", flush=True)
    suspend_key.block()
    resume = f"ROS_DOMAIN_ID={os.environ['ROS_DOMAIN_ID']} {suspend_key.RESUME}"
    suspend_key.hold_all_at_each(lambda sentence: print(sentence, flush=True), resume)
    composition = Composition(
        demonstration.launch_file,
        log,
        **dict.fromkeys(("emulate", "control", "record"), True),
        **{"bag": bag, "compression": "zstd", "stamp_source": "wire"},
        **{port: free_port() for port in ports_of(demonstration.launch_file)},
        **demonstration.arguments,
    )
    end_s = time.monotonic() + TIMEOUT_S
    ended = None
    try:
        while time.monotonic() < end_s and not composition.has_failed:
            if ended is None and (matches := composition.matches(demonstration.ended)):
                ended, end_s = matches[0], time.monotonic() + LINGER_S
            time.sleep(STATUS_PERIOD_S)
    finally:
        ended_well = composition.stop()
    if ended is None or not ended_well:
        what = "not every process exited cleanly" if ended else "it did not get to its target"
        print(f"{composition.tail()}\nThe flight failed: {what}; the complete output is in {log}.", file=sys.stderr)
        return 1
    report = write_report(bag, folder / "report.html")
    print(f"{ended[0]}\n  recorded  {bag}\n  report    {report}")
    return int(bool(ended.groupdict().get("bad")))
