# SPDX-License-Identifier: Apache-2.0
"""The testbed demonstration: a drone finds its target with two cameras, through ROS topics, and stays there."""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from drone_bridge.emulators.testbed.world import World
from drone_bridge.tools.demo.composition import free_port
from drone_bridge.tools.demo.flight import Watcher, read_bag
from drone_bridge.tools.demo.picture import draw
from drone_bridge.tools.demo.recorded_flight import prepare, print_failure, print_results, start_recorded, watch

SEED: Final = 222  # the target is high to the left, with obstacles in view and none in the way
OBSTACLES: Final = 6
HOLD_S: Final = 4.0  # simulated, after the target was reached
TIMEOUT_S: Final = 60.0  # wall time
REACHED: Final = r"target reached at t=([\d.]+) s"


def show(folder: Path) -> int:
    """Fly, print a status line and a table, write bag and picture into the folder; return the exit status."""
    prepare(folder)
    world = World.random(SEED, OBSTACLES)
    print("A drone looks for a red sphere with its two cameras. Every frame and every command is a ROS 2 topic.")
    composition = start_recorded(
        "testbed.launch.xml",
        folder,
        testbed_port=free_port(),
        attitude_layout="pose",
        publish_clock=True,
        testbed_seed=SEED,
        obstacles=OBSTACLES,
        testbed_image_width=320,
        testbed_image_height=240,
        vertical_angle_of_view=104.8,
    )

    def has_held(watcher: Watcher) -> bool:
        reached = composition.find(REACHED)
        return reached is not None and watcher.simulated_s > float(reached[1]) + HOLD_S

    try:
        watcher = watch(composition, partial(Watcher, world), Watcher.status, has_held, timeout_s=TIMEOUT_S)
    finally:
        ended_well = composition.stop()
    reached = composition.find(REACHED)
    if not (reached and ended_well):
        print_failure(composition, folder, "The flight failed")
        return 1
    reached_s = float(reached[1])
    recording = read_bag(folder / "bag", world)
    picture = folder / "flight.png"
    draw(recording, world, reached_s, picture)
    flown_m = float(np.linalg.norm(np.diff(recording.positions, axis=0), axis=1).sum())
    after = recording.distances[recording.times > reached_s + 1]
    counts = watcher.diagnostics
    results = {
        "target at the start": f"{recording.distances[0]:.2f} m away",
        "reached": f"after {reached_s:.2f} s simulated, {flown_m:.1f} m flown in all",
        "held": f"within {after.max():.2f} m of its centre" if after.size else "-",
        "frames": f"{counts.get('frames', '-')}, dropped {counts.get('dropped messages', '-')}",
    }
    print_results(results, recording.messages, picture)
    return 0
