# SPDX-License-Identifier: Apache-2.0
"""The landing demonstration: a drone without GPS finds a moving rover with its camera and lands on it."""

import math
import time
from pathlib import Path
from typing import Final

from geometry_msgs.msg import PointStamped
from rclpy.node import Node

from drone_bridge.msg import ControllerState
from drone_bridge.tools.demo.composition import free_port
from drone_bridge.tools.demo.landing_picture import draw
from drone_bridge.tools.demo.landing_recording import read_landing
from drone_bridge.tools.demo.landings import TOUCHDOWN
from drone_bridge.tools.demo.recorded_flight import prepare, print_failure, print_results, start_recorded, watch

SEED: Final = 7
RIDE_S: Final = 3.0  # on the rover, after the touchdown
TIMEOUT_S: Final = 90.0


class Watcher(Node):
    """Subscribes to what the status line shows."""

    def __init__(self) -> None:
        super().__init__("demo")
        self._state = ControllerState(state="starting", reason="")
        self._height_m: float | None = None
        self.create_subscription(ControllerState, "drone_controller/state", self._on_state, 1)
        self.create_subscription(PointStamped, "height", self._on_height, 1)

    def _on_state(self, message: ControllerState) -> None:
        self._state = message

    def _on_height(self, message: PointStamped) -> None:
        self._height_m = message.point.z

    def status(self) -> tuple[str, None]:
        """Return height, state and reason in one line; the end is open."""
        height = "-" if self._height_m is None else f"{self._height_m:.2f}"
        return f"{height:>5} m high   {self._state.state:11}   {self._state.reason}", None


def show(folder: Path) -> int:
    """Land, print a status line and a table, write bag and picture into the folder; return the exit status."""
    prepare(folder)
    print("A drone without GPS takes off, searches for a moving rover with its camera, follows it and lands on it.")
    composition = start_recorded(
        "landing.launch.xml",
        folder,
        telemetry_port=free_port(),
        use_camera=True,
        rover_pattern="circular",
        landing_start="ground",
        landing_seed=SEED,
    )
    landed_s = math.inf

    def has_ridden(_: Watcher) -> bool:
        nonlocal landed_s
        if composition.find(TOUCHDOWN.pattern):
            landed_s = min(landed_s, time.monotonic())
        return time.monotonic() > landed_s + RIDE_S

    try:
        watch(composition, Watcher, Watcher.status, has_ridden, timeout_s=TIMEOUT_S)
    finally:
        ended_well = composition.stop()
    touchdown = composition.find(TOUCHDOWN.pattern)
    if not (touchdown and ended_well):
        print_failure(composition, folder, "The flight failed")
        return 1
    recording = read_landing(folder / "bag")
    picture = folder / "landing.png"
    draw(recording, f"{float(touchdown['error']):.2f} m off centre", picture)
    found_s = float(recording.sighting_times[0])
    results = {
        "pad found": f"after {found_s:.1f} s, from {recording.altitude_at(found_s):.1f} m above the ground",
        "touchdown": f"after {recording.landed_s:.1f} s, {touchdown['error']} m off the centre of the pad",
        "touchdown speed": f"{touchdown['vertical']} m/s downwards, {touchdown['relative']} m/s across the pad",
    }
    print_results(results, recording.messages, picture)
    return 0 if touchdown["verdict"] == "good" else 1
