# SPDX-License-Identifier: Apache-2.0
"""The demonstration of a landing: a drone without GPS finds a moving rover with its camera, and comes down on it."""

import re
import shutil
import sys
import time
from pathlib import Path
from typing import Final

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Range

from drone_bridge.msg import ControllerState
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.landing_picture import draw
from drone_bridge.tools.demo.landing_recording import LandingRecording, read_landing
from drone_bridge.tools.demo.landings import TOUCHDOWN
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.reporting.command import write_report

SEED: Final = 7
RIDE_S: Final = 3.0  # on the rover, after the touchdown
PATIENCE_S: Final = 90.0  # for everything
STATUS_PERIOD_S: Final = 0.2


class Watcher(Node):
    """Keeps the latest of what the status line shows."""

    def __init__(self) -> None:
        super().__init__("demo")
        self._state = ControllerState(state="starting", reason="")
        self._altitude_m: float | None = None
        self.create_subscription(ControllerState, "drone_controller/state", self._on_state, 1)
        self.create_subscription(Range, "altitude", self._on_altitude, 1)

    def _on_state(self, message: ControllerState) -> None:
        self._state = message

    def _on_altitude(self, message: Range) -> None:
        self._altitude_m = message.range

    def status_line(self) -> str:
        """Return height, state and reason in one line."""
        altitude = "-" if self._altitude_m is None else f"{self._altitude_m:.2f}"
        return f"{altitude:>5} m high   {self._state.state:11}   {self._state.reason}"


def show(folder: Path) -> int:
    """Land, print a live line and a table, write bag and picture into the folder; return the exit status."""
    isolate_ros_graph()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print("A drone without GPS takes off, looks for a moving rover with its camera, follows it and lands on it.")
    composition = Composition(
        "landing.launch.xml",
        folder / "log.txt",
        emulate=True,
        control=True,
        record=True,
        bag=folder / "bag",
        compression="zstd",
        port=free_port(),
        stamp_source="wire",
        use_camera=True,
        pattern="circular",
        start="ground",
        seed=SEED,
    )
    try:
        _watch(composition)
    finally:
        ended_well = composition.stop()
    touchdown = composition.find(TOUCHDOWN.pattern)
    if not (touchdown and ended_well):
        print(composition.tail(), file=sys.stderr)
        print(f"The flight did not end well; all that was printed is in {folder / 'log.txt'}.", file=sys.stderr)
        return 1
    recording = read_landing(folder / "bag")
    draw(recording, f"{float(touchdown['error']):.2f} m off the middle", folder / "landing.png")
    _print_table(recording, touchdown, folder)
    return 0 if touchdown["verdict"] == "good" else 1


def _watch(composition: Composition) -> None:
    """Show the status line until the drone has ridden on the rover for a while."""
    rclpy.init()
    watcher = Watcher()
    executor = SingleThreadedExecutor()
    executor.add_node(watcher)
    give_up_at_s, shown_at_s = time.monotonic() + PATIENCE_S, 0.0
    try:
        with Progress() as progress:
            # Nothing of the composition ends by itself, so what does has failed.
            while not composition.find(r"(?m)^\[launch\] .*(ended|died)") and time.monotonic() < give_up_at_s:
                executor.spin_once(timeout_sec=STATUS_PERIOD_S)
                if time.monotonic() - shown_at_s < STATUS_PERIOD_S:
                    continue
                shown_at_s = time.monotonic()
                progress.show(watcher.status_line())
                if composition.find(TOUCHDOWN.pattern):
                    give_up_at_s = min(give_up_at_s, shown_at_s + RIDE_S)
    finally:
        watcher.destroy_node()
        rclpy.shutdown()


def _print_table(recording: LandingRecording, touchdown: re.Match[str], folder: Path) -> None:
    found_s = float(recording.sighting_times[0])
    rows = (
        ("pad found", f"after {found_s:.1f} s, from {recording.altitude_at(found_s):.1f} m above the ground"),
        ("touchdown", f"after {recording.landed_s:.1f} s, {touchdown['error']} m off the middle of the pad"),
        ("speed then", f"{touchdown['vertical']} m/s downwards, {touchdown['relative']} m/s across the pad"),
        ("recorded", f"{recording.messages} messages in {folder / 'bag'}"),
        ("picture", str(folder / "landing.png")),
        ("report", str(write_report(folder / "bag", folder / "report.html"))),
    )
    for name, value in rows:
        print(f"  {name:20} {value}")
