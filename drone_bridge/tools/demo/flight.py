# SPDX-License-Identifier: Apache-2.0
"""The flight of the testbed demonstration: observed while it lasts, and read from its bag afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from drone_bridge.emulators.testbed.world import World
from drone_bridge.msg import ControllerState
from drone_bridge.tools.bags.bag import Bag, stamp_s
from drone_bridge.translate.testbed_frames import enu_from_testbed
from drone_bridge.translate.time import seconds_of

CAMERAS: Final = ("left", "right")


def target_in_enu(world: World) -> npt.NDArray[np.float64]:
    """Return the centre of the world's target in the frame of the odometry, m."""
    return np.array(enu_from_testbed(*world.targets[0].centre))


class Watcher(Node):
    """Subscribes to what the status line shows."""

    def __init__(self, world: World) -> None:
        super().__init__("demo")
        self._target = target_in_enu(world)
        self.simulated_s = 0.0
        self.distance_m: float | None = None
        self.reached_at_s: float | None = None
        self.state = "starting"
        self.diagnostics: dict[str, str] = {}
        self.create_subscription(Clock, "/clock", self._on_clock, 1)
        self.create_subscription(Odometry, "odom", self._on_odometry, 1)
        self.create_subscription(ControllerState, "drone_controller/state", self._on_state, 1)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 1)

    def _on_clock(self, message: Clock) -> None:
        self.simulated_s = seconds_of(message.clock)

    def _on_odometry(self, message: Odometry) -> None:
        position = message.pose.pose.position
        self.distance_m = float(np.linalg.norm(self._target - (position.x, position.y, position.z)))

    def _on_state(self, message: ControllerState) -> None:
        self.state = message.state

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if "testbed_bridge" in status.name:
                self.diagnostics = {pair.key: pair.value for pair in status.values}

    def status(self) -> tuple[str, None]:
        """Return simulated time, distance, frame rate and latency in one line, and no count towards a total."""
        distance = "-" if self.distance_m is None else f"{self.distance_m:.2f}"
        rate = self.diagnostics.get("frames per second", "-")
        latency = self.diagnostics.get("frame received to published and answered (ms)", "-")
        return (
            f"t = {self.simulated_s:5.1f} s   {self.state:11}   target {distance:>5} m away   "
            f"{rate:>5} frames/s   {latency:>5} ms from frame to topics",
            None,
        )


@dataclass
class Recording:
    """What a bag says about a flight. Times are simulated seconds."""

    times: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    positions: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))  # n x 3, ENU, m
    distances: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # n, to the target's centre, m
    images: dict[str, list[tuple[float, npt.NDArray[np.uint8]]]] = field(default_factory=dict)  # by side
    messages: int = 0


def read_bag(path: Path, world: World) -> Recording:
    """Read the flight's path, and what each camera saw at the start, halfway, and at the end."""
    recording = Recording()
    with Bag(path) as bag:
        recording.messages = bag.count
        track = [(stamp_s(message), _position(message)) for message in bag.deserialized("/odom")]
        recording.times = np.array([seconds for seconds, _ in track])
        recording.positions = np.array([position for _, position in track])
        recording.distances = np.linalg.norm(recording.positions - target_in_enu(world), axis=1)
        halfway = recording.times[np.argmax(recording.distances <= recording.distances[0] / 2)]
        for side in CAMERAS:
            topic = f"/{side}/image_raw"
            # Images are large: their times first, then only those that are wanted.
            times = np.array([stamp_s(message) for message in bag.deserialized(topic)])
            moments = {times[0], times[np.argmin(abs(times - halfway))], times[-1]}
            recording.images[side] = [
                (stamp_s(message), message.data.reshape(message.height, message.width, 3))
                for message in bag.deserialized(topic)
                if stamp_s(message) in moments
            ]
    return recording


def _position(message: Any) -> tuple[float, float, float]:
    position = message.pose.pose.position
    return position.x, position.y, position.z
