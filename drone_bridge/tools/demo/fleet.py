# SPDX-License-Identifier: Apache-2.0
"""The fleet demonstration: eight drones fly to their targets at once, bridged and controlled in one process."""

from __future__ import annotations

import contextlib
import math
import random
import socket
from functools import partial
from pathlib import Path
from typing import Final

from nav_msgs.msg import Odometry
from rclpy.node import Node

from drone_bridge.emulators.testbed.world import World
from drone_bridge.tools.bags.bag import stamp_s
from drone_bridge.tools.demo.composition import Composition
from drone_bridge.tools.demo.fleet_picture import Track, draw
from drone_bridge.tools.demo.flight import target_in_enu
from drone_bridge.tools.demo.recorded_flight import prepare, print_failure, watch

FIRST_SEED: Final = 1
HOLD_S: Final = 2.0  # simulated, after the last target was reached
TIMEOUT_S: Final = 180.0  # wall time

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
    """Records the track of every drone."""

    def __init__(self, drones: int) -> None:
        super().__init__("demo")
        self.tracks = [
            Track(f"drone{number}", target_in_enu(World.random(FIRST_SEED + number - 1)))
            for number in range(1, drones + 1)
        ]
        for track in self.tracks:
            self.create_subscription(Odometry, f"{track.name}/odom", partial(self._on_odometry, track), 10)

    def _on_odometry(self, track: Track, message: Odometry) -> None:
        position = message.pose.pose.position
        track.add(stamp_s(message), (position.x, position.y, position.z))

    @property
    def simulated_s(self) -> float:
        """The time of the drone that is furthest behind."""
        return min(track.times_s[-1] if track.times_s else 0.0 for track in self.tracks)


def show(folder: Path, drones: int) -> int:
    """Fly, print a status line and a table, write log and picture into the folder; return the exit status."""
    prepare(folder)
    file = folder / "fleet.yaml"
    last_seed = FIRST_SEED + drones - 1
    file.write_text(
        FILE.format(name=file.name, drones=drones, port=_free_ports(drones), first_seed=FIRST_SEED, last_seed=last_seed)
    )
    print(
        f"{drones} drones look for their targets at the same time. All bridges and controllers are in one process.",
        flush=True,
    )
    composition = Composition("fleet.launch.xml", folder / "log.txt", fleet_file=file.resolve())
    try:
        tracks = _watch(composition, drones)
    finally:
        ended_well = composition.stop()
    for track in tracks:
        if reached := composition.find(rf"\[{track.name} emulator\] target reached at t=([\d.]+) s"):
            track.reached_at_s = float(reached[1])
    missed = [track.name for track in tracks if track.reached_at_s is None]
    if missed or not ended_well:
        what = f"{', '.join(missed)} did not reach their targets" if missed else "not every process exited cleanly"
        print_failure(composition, folder, f"The demonstration failed: {what}")
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
    """Show how many have arrived until all have hovered for a while; return their tracks."""
    arrived_at_s = math.inf

    def arrived() -> int:
        return composition.count(r"emulator\] target reached at")

    def status(node: Tracks) -> tuple[str, float]:
        return f"t = {node.simulated_s:.1f} s, {arrived()} of {drones} have arrived", arrived()

    def have_hovered(node: Tracks) -> bool:
        nonlocal arrived_at_s
        if arrived() == drones:
            arrived_at_s = min(arrived_at_s, node.simulated_s)
        return node.simulated_s >= arrived_at_s + HOLD_S

    return watch(composition, partial(Tracks, drones), status, have_hovered, timeout_s=TIMEOUT_S, total=drones).tracks


def _free_ports(count: int) -> int:
    """Return the first of so many free TCP ports in a row. Raises OSError when there are none."""
    for first in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError(f"There are no {count} free ports in a row.")
