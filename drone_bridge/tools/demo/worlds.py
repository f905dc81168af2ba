# SPDX-License-Identifier: Apache-2.0
"""The same flight in many seeded worlds, in both modes of sync."""

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from drone_bridge.emulators.testbed.world import World
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress

ENOUGH: Final = 0.95  # of the targets
LONGEST_FLIGHT_S: Final = 40.0  # simulated
LONGEST_WAIT_S: Final = 90.0  # wall time
START_TIMEOUT_S: Final = 20.0
# In lockstep each frame waits for its reply, so the testbed need not keep to wall time.
MODES: Final = {"latest": "--realtime", "lockstep": "--fast"}


def show(worlds: int) -> int:
    """Fly in every world and mode, print the table, and return 0 if enough targets were reached."""
    isolate_ros_graph()
    results: dict[str, list[float | None]] = {}
    with tempfile.TemporaryDirectory() as folder, Progress(total=worlds * len(MODES)) as progress:
        for number, mode in enumerate(MODES):
            results[mode] = _fly_all(mode, worlds, Path(folder) / f"{mode}.txt", progress, done=number * worlds)
    print(f"\n{'seed':>4}  {'target at':>9}  " + "  ".join(f"{mode:>10}" for mode in MODES))
    for seed in range(worlds):
        distance_m = float(np.linalg.norm(World.random(seed).targets[0].centre))
        times = (results[mode][seed] for mode in MODES)
        cells = "  ".join(f"{'missed' if time_s is None else f'{time_s:.2f} s':>10}" for time_s in times)
        print(f"{seed:>4}  {distance_m:>7.2f} m  {cells}")
    reached = {mode: sum(time_s is not None for time_s in times) for mode, times in results.items()}
    print("reached         " + "  ".join(f"{f'{count} of {worlds}':>10}" for count in reached.values()))
    return 0 if all(count >= ENOUGH * worlds for count in reached.values()) else 1


def _fly_all(mode: str, worlds: int, log: Path, progress: Progress, done: int) -> list[float | None]:
    """Return the simulated time to the target per world, None where it was not reached.

    Bridge and controller stay up; the testbeds connect one after the other.
    """
    port = free_port()
    composition = Composition(
        "testbed.launch.xml",
        log,
        control=True,
        testbed_bridge_role="listen",
        testbed_port=port,
        testbed_sync=mode,
        stamp_source="wire",
    )
    try:
        if not composition.wait_for("Waiting for a peer", START_TIMEOUT_S):
            raise RuntimeError(f"The bridge did not start:\n{composition.tail()}")
        times = []
        for seed in range(worlds):
            time_s, summary = _fly(mode, seed, port)
            times.append(time_s)
            progress.show(f"{mode}, seed {seed}: {summary}", done + len(times))
        return times
    finally:
        composition.stop()


def _fly(mode: str, seed: int, port: int) -> tuple[float | None, str]:
    """Return the simulated time to the target, None where it was not reached, and the testbed's last line."""
    options = f"--role connect --port {port} --seed {seed} {MODES[mode]} --once --until-reached"
    process = subprocess.Popen(
        [sys.executable, "-m", "drone_bridge.emulators.testbed", *options.split(), "--duration", str(LONGEST_FLIGHT_S)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=LONGEST_WAIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    reached = re.search(r"target reached at t=([\d.]+) s", output)
    return float(reached[1]) if reached else None, output.strip().splitlines()[-1]
