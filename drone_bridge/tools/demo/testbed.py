# SPDX-License-Identifier: Apache-2.0
"""The demonstration of the testbed: a drone finds its target by two cameras, through ROS topics, and stays there."""

import shutil
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor

from drone_bridge.emulators.testbed.world import World
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.flight import Recording, Watcher, read_bag
from drone_bridge.tools.demo.picture import draw
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.reporting.command import write_report

SEED: Final = 222  # the target is high to the left, with obstacles in view and none in the way
OBSTACLES: Final = 6
HOLD_S: Final = 4.0  # simulated, after the target was reached
PATIENCE_S: Final = 60.0  # on the wall, for everything
STATUS_PERIOD_S: Final = 0.2


def show(folder: Path) -> int:
    """Fly, print a live line and a table, write bag and picture into the folder; return the exit status."""
    isolate_ros_graph()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    world = World.random(SEED, OBSTACLES)
    print("A drone looks for a red sphere with its two cameras. Every frame and every command is a ROS 2 topic.")
    composition = Composition(
        "testbed.launch.xml",
        folder / "log.txt",
        emulate=True,
        control=True,
        record=True,
        bag=folder / "bag",
        compression="zstd",
        port=free_port(),
        attitude_layout="pose",
        stamp_source="wire",
        publish_clock=True,
        seed=SEED,
        obstacles=OBSTACLES,
        width=320,
        height=240,
        vertical_angle_of_view=104.8,
    )
    try:
        diagnostics = _watch(world, composition)
    finally:
        ended_well = composition.stop()
    reached = composition.find(r"target reached at t=([\d.]+) s")
    if not (reached and ended_well):
        print(composition.tail(), file=sys.stderr)
        print(f"The flight did not end well; all that was printed is in {folder / 'log.txt'}.", file=sys.stderr)
        return 1
    recording = read_bag(folder / "bag", world)
    draw(recording, world, float(reached[1]), folder / "flight.png")
    _print_table(recording, float(reached[1]), diagnostics, folder)
    return 0


def _watch(world: World, composition: Composition) -> dict[str, str]:
    """Show the status line until the drone has held its place for a while; return the last diagnostics."""
    rclpy.init()
    watcher = Watcher(world)
    executor = SingleThreadedExecutor()
    executor.add_node(watcher)
    give_up_at_s = time.monotonic() + PATIENCE_S
    shown_at_s = 0.0
    try:
        with Progress() as progress:
            # Nothing of the composition ends by itself, so what does has failed.
            while not composition.find(r"(?m)^\[launch\] .*(ended|died)") and time.monotonic() < give_up_at_s:
                executor.spin_once(timeout_sec=STATUS_PERIOD_S)
                if time.monotonic() - shown_at_s >= STATUS_PERIOD_S:
                    shown_at_s = time.monotonic()
                    progress.show(watcher.status_line())
                    reached = composition.find(r"target reached at t=([\d.]+) s")
                    if reached and watcher.simulated_s > float(reached[1]) + HOLD_S:
                        break
        return watcher.diagnostics
    finally:
        watcher.destroy_node()
        rclpy.shutdown()


def _print_table(recording: Recording, reached_at_s: float, diagnostics: dict[str, str], folder: Path) -> None:
    flown_m = float(np.linalg.norm(np.diff(recording.positions, axis=0), axis=1).sum())
    after = recording.distances[recording.times > reached_at_s + 1]
    rows = (
        ("target at the start", f"{recording.distances[0]:.2f} m away"),
        ("reached", f"after {reached_at_s:.2f} s simulated, {flown_m:.1f} m flown in all"),
        ("held", f"within {after.max():.2f} m of its centre" if after.size else "-"),
        ("frames", f"{diagnostics.get('frames', '-')}, dropped {diagnostics.get('dropped messages', '-')}"),
        ("recorded", f"{recording.messages} messages in {folder / 'bag'}"),
        ("picture", str(folder / "flight.png")),
        ("report", str(write_report(folder / "bag", folder / "report.html"))),
    )
    for name, value in rows:
        print(f"  {name:20} {value}")
