# SPDX-License-Identifier: Apache-2.0
"""All bridges at once, recorded: do messages arrive on every topic, and how many per second?"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from drone_bridge.kind import kinds
from drone_bridge.tools.bags.bag import Bag
from drone_bridge.tools.bags.info import print_info
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of
from drone_bridge.tools.demo.progress import Progress

LAUNCH_FILE = "all.launch.xml"
START_TIMEOUT_S = 60.0
SETTLING_S = 3.0  # from the first words of the last process until all topics are there
STEP_S = 0.5
RECORDED_TIMEOUT_S = 20.0
#: The last parts of topics whose messages tell of something that need not happen.
ON_EVENTS = ("transition_event", "attributes", "completed", "item_events", "trigger_events")


def show(folder: Path, duration_s: float) -> int:
    """Run all bridges, print the table, and return 0 if messages arrived on every topic."""
    isolate_ros_graph()
    folder.mkdir(parents=True, exist_ok=True)
    log, recorded = folder / "all.txt", folder / "all"
    shutil.rmtree(recorded, ignore_errors=True)
    began_s = time.monotonic()
    ports = {port: free_port() for port in ports_of(LAUNCH_FILE)}
    composition = Composition(LAUNCH_FILE, log, record=True, bag=recorded, compression="zstd", **ports)
    try:
        print(
            f"{len(_namespaces())} bridges and their peers are started, and recorded for {duration_s:g} s.", flush=True
        )
        while composition.is_running and not _all_have_spoken(composition) and _since(began_s) < START_TIMEOUT_S:
            time.sleep(STEP_S)
        up_s = time.monotonic()
        with Progress() as progress:
            while composition.is_running and _since(up_s) < SETTLING_S + duration_s:
                progress.show(f"recording, {_since(up_s):.0f} of {SETTLING_S + duration_s:g} s")
                time.sleep(STEP_S)
    finally:
        _finish_recording(composition)
        ended_well = composition.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = (used.ru_utime + used.ru_stime) / _since(began_s)
    problems = list(_report(recorded))
    print(f"All processes used {cores:.2f} processor cores, startup and recording included.")
    if not ended_well:
        problems.append(f"not every process exited cleanly; the complete output is in {log}")
    for problem in problems:
        print(f"{problem[0].upper()}{problem[1:]}.", file=sys.stderr)
    return 1 if problems else 0


def _finish_recording(composition: Composition) -> None:
    """Let the recorder complete its bag before so many processes end that a busy machine takes its time."""
    for started in composition.matches(r"(?m)^\[launch\] recorder-\d+ started \(pid (\d+)\)"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(started[1]), signal.SIGINT)
        composition.wait_for(r"(?m)^\[launch\] recorder-\d+ (ended|failed|was)", RECORDED_TIMEOUT_S)


def _since(time_s: float) -> float:
    return time.monotonic() - time_s


def _all_have_spoken(composition: Composition) -> bool:
    started = {found[1] for found in composition.matches(r"(?m)^\[launch\] (\S+) started")}
    return bool(started) and started <= {found[1] for found in composition.matches(r"(?m)^\[(\S+)\]")}


def _report(recorded: Path) -> Iterator[str]:
    """Print what was recorded, and how much bridges have dropped; yield what is missing."""
    with Bag(recorded) as bag:
        print_info(bag)
        for namespace in _namespaces():
            own = [topic for topic in bag.topics if topic.name.startswith(f"/{namespace}/")]
            silent = (each.name for each in own if not each.count and each.name.rpartition("/")[2] not in ON_EVENTS)
            yield from (f"nothing was received on {name}" for name in silent)
            if not own:
                yield f"nothing was received from {namespace}"
        dropped = _dropped(bag)
    print(f"Dropped messages: {', '.join(f'{namespace} {count}' for namespace, count in sorted(dropped.items()))}.")


def _namespaces() -> list[str]:
    """Return those that the launch file gives to what it includes."""
    included = {kind.launch_file for kind in kinds().values() if kind.package == "drone_bridge"}
    return sorted(name.removesuffix(".launch.xml") for name in included)


def _dropped(bag: Bag) -> dict[str, str]:
    """Return how many messages each bridge says that it has dropped, by its namespace."""
    return {
        status.name.split("/")[0]: pair.value
        for report in bag.deserialized("/diagnostics")
        for status in report.status
        for pair in status.values
        if pair.key == "dropped messages"
    }
