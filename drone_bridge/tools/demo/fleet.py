# SPDX-License-Identifier: Apache-2.0
"""The demonstration of fleets: eight drones fly to their targets at once, bridged and controlled in one process."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from drone_bridge.emulators.testbed.world import World
from drone_bridge.tools.demo.composition import Composition, isolate_ros_graph
from drone_bridge.tools.demo.fleet_picture import Track, draw
from drone_bridge.tools.demo.flight import NANOSECONDS, target_in_enu
from drone_bridge.tools.demo.progress import Progress

DRONES: Final = 8
FIRST_SEED: Final = 1
HOLD_S: Final = 2.0  # simulated, after the last target was reached
PATIENCE_S: Final = 180.0  # on the wall, for everything
STATUS_PERIOD_S: Final = 0.2

FILE: Final = """\
# The drones of `drone-bridge demo fleet`; run them again with: drone-bridge fleet {name}
vehicles:
  drone[1-{drones}]:
    protocol: testbed
    port: {port}
    parameters:
      attitude_layout: pose
      sync: lockstep # each frame waits for its command, however busy the machine is
      stamp_source: wire
    emulate: {{seed: "[{first_seed}-{last_seed}]", rate: 20, width: 160, height: 120, vfov: 104.8}}
    control: true
"""


class Tracks(Node):
    """Keeps where every drone has been."""

    def __init__(self, drones: int) -> None:
        super().__init__("demo")
        self.tracks = [
            Track(f"drone{number}", target_in_enu(World.random(FIRST_SEED + number - 1)))
            for number in range(1, drones + 1)
        ]
        for track in self.tracks:
            self.create_subscription(Odometry, f"{track.name}/odom", partial(self._on_odometry, track), 10)

    def _on_odometry(self, track: Track, message: Odometry) -> None:
        position, stamp = message.pose.pose.position, message.header.stamp
        track.add(stamp.sec + stamp.nanosec / NANOSECONDS, (position.x, position.y, position.z))


def show(folder: Path, drones: int = DRONES) -> int:
    """Fly, print a live line and a table, write log and picture into the folder; return the exit status."""
    isolate_ros_graph()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "fleet.yaml"
    last_seed = FIRST_SEED + drones - 1
    file.write_text(
        FILE.format(name=file.name, drones=drones, port=_free_ports(drones), first_seed=FIRST_SEED, last_seed=last_seed)
    )
    print(
        f"{drones} drones look for their targets at once. All bridges and controllers are in one process.", flush=True
    )
    composition = Composition("fleet.launch.xml", folder / "log.txt", file=file.resolve())
    try:
        tracks = _watch(composition, drones)
    finally:
        ended_well = composition.stop()
    for track in tracks:
        if reached := composition.find(rf"\[{track.name} emulator\] target reached at t=([\d.]+) s"):
            track.reached_at_s = float(reached[1])
    missed = [track.name for track in tracks if track.reached_at_s is None]
    if missed or not ended_well:
        print(composition.tail(), file=sys.stderr)
        what = f"{', '.join(missed)} did not get there" if missed else "not all of it ended well"
        print(f"The flights went wrong: {what}; all that was printed is in {folder / 'log.txt'}.", file=sys.stderr)
        return 1
    draw(tracks, folder / "fleet.png")
    for track in tracks:
        print(
            f"  {track.name:8} target {track.distances_m[0]:5.2f} m away, reached after {track.reached_at_s:5.2f} s "
            f"simulated, {track.flown_m:5.1f} m flown"
        )
    print(f"  picture  {folder / 'fleet.png'}")
    return 0


def _watch(composition: Composition, drones: int) -> list[Track]:
    """Show how many have arrived until all have held their places for a while; return where they have been."""
    rclpy.init()
    node = Tracks(drones)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    give_up_at_s = time.monotonic() + PATIENCE_S
    shown_at_s, arrived_at_s = 0.0, None
    try:
        with Progress(total=drones) as progress:
            # Nothing of the composition ends by itself, so what does has failed.
            while not composition.find(r"(?m)^\[launch\] .*(ended|died)") and time.monotonic() < give_up_at_s:
                executor.spin_once(timeout_sec=STATUS_PERIOD_S)
                if time.monotonic() - shown_at_s < STATUS_PERIOD_S:
                    continue
                shown_at_s = time.monotonic()
                arrived = composition.count(r"emulator\] target reached at")
                slowest_s = min(track.times_s[-1] if track.times_s else 0.0 for track in node.tracks)
                progress.show(f"t = {slowest_s:.1f} s, {arrived} of {drones} have arrived", arrived)
                if arrived == drones:
                    arrived_at_s = slowest_s if arrived_at_s is None else arrived_at_s
                    if slowest_s >= arrived_at_s + HOLD_S:
                        break
        return node.tracks
    finally:
        node.destroy_node()
        rclpy.shutdown()


def _free_ports(count: int) -> int:
    """Return the first of so many free TCP ports in a row. Raises OSError when there are none."""
    for first in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError(f"There are no {count} free ports in a row.")
