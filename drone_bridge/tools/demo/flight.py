# SPDX-License-Identifier: Apache-2.0
"""The flight of the demonstration: watched while it goes on, and read from its bag afterwards."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock

from drone_bridge.emulators.testbed_world import World
from drone_bridge.msg import ControllerState
from drone_bridge.translate.frames import enu_from_testbed

NANOSECONDS = 1e9


def target_in_enu(world: World) -> npt.NDArray[np.float64]:
    """Return the centre of the world's target in the frame of the odometry, m."""
    return np.array(enu_from_testbed(*world.targets[0].centre))


class Watcher(Node):
    """Keeps the latest of what the status line shows."""

    def __init__(self, world: World) -> None:
        super().__init__("demo")
        self._target = target_in_enu(world)
        self.simulated_s = 0.0
        self.distance_m = math.nan
        self.reached_at_s: float | None = None
        self.state = "starting"
        self.diagnostics: dict[str, str] = {}
        self.heard_at_s: float | None = None
        self.create_subscription(Clock, "/clock", self._on_clock, 1)
        self.create_subscription(Odometry, "odom", self._on_odometry, 1)
        self.create_subscription(ControllerState, "drone_controller/state", self._on_state, 1)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 1)

    def _on_clock(self, message: Clock) -> None:
        self.simulated_s = message.clock.sec + message.clock.nanosec / NANOSECONDS

    def _on_odometry(self, message: Odometry) -> None:
        position = message.pose.pose.position
        self.distance_m = float(np.linalg.norm(self._target - (position.x, position.y, position.z)))
        self.heard_at_s = time.monotonic()

    def _on_state(self, message: ControllerState) -> None:
        self.state = message.state

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith("testbed_bridge"):
                self.diagnostics = {pair.key: pair.value for pair in status.values}

    def status_line(self) -> str:
        """Return simulated time, distance, frame rate and latency in one line."""
        rate = self.diagnostics.get("frames per second", "-")
        latency = self.diagnostics.get("frame received to published and answered (ms)", "-")
        return (
            f"t = {self.simulated_s:5.1f} s   {self.state:11}   target {self.distance_m:5.2f} m away   "
            f"{rate:>5} frames/s   {latency:>5} ms from frame to topics"
        )


@dataclass
class Recording:
    """What a bag says about a flight. Times are simulated seconds."""

    times: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    positions: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))  # n x 3, ENU, m
    images: dict[str, list[tuple[float, npt.NDArray[np.uint8]]]] = field(default_factory=dict)  # by side
    messages: int = 0


def read_bag(bag: Path, moments: tuple[float, ...]) -> Recording:
    """Read the flight's path, and of each camera the images nearest to the given shares (0 to 1) of its duration."""
    recording = Recording()
    path: list[tuple[float, tuple[float, float, float]]] = []
    stamps: dict[str, list[float]] = {"left": [], "right": []}
    with AnyReader([bag]) as reader:
        connections = {connection.topic: connection for connection in reader.connections}
        recording.messages = reader.message_count
        for connection, _, raw in reader.messages([connections["/odom"]]):
            message: Any = reader.deserialize(raw, connection.msgtype)
            position = message.pose.pose.position
            path.append((_seconds(message), (position.x, position.y, position.z)))
        images = [connections[f"/{side}/image_raw"] for side in stamps]
        # Images are large: their times first, then only those that are wanted.
        for connection, _, raw in reader.messages(images):
            stamps[_side(connection.topic)].append(_seconds(reader.deserialize(raw, connection.msgtype)))
        wanted = {side: {times[round(share * (len(times) - 1))] for share in moments} for side, times in stamps.items()}
        for connection, _, raw in reader.messages(images):
            message = reader.deserialize(raw, connection.msgtype)
            side = _side(connection.topic)
            if _seconds(message) in wanted[side]:
                pixels = message.data.reshape(message.height, message.width, 3)
                recording.images.setdefault(side, []).append((_seconds(message), pixels))
    recording.times = np.array([moment for moment, _ in path])
    recording.positions = np.array([position for _, position in path])
    return recording


def _side(topic: str) -> str:
    return topic.split("/")[1]


def _seconds(message: Any) -> float:
    return float(message.header.stamp.sec + message.header.stamp.nanosec / NANOSECONDS)
