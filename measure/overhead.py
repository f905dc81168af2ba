# SPDX-License-Identifier: Apache-2.0
"""Overhead: CPU of a frame with seven topics, and of full navdata, in a bridge and in a bare script, in turn.

All are commanded at 20 Hz, and each starts anew for its turn. Environment variables: MEASURE_ONLY, a regular expression
for names of loads; MEASURE_ROUNDS and MEASURE_SECONDS, the number and duration of turns; MEASURE_TREE, the built folder
of an older version. With it, this version is compared with that one instead: in triples (older, this, older), since the
machine's speed changes, until the standard error of the ratio is below 2 %, or for MEASURE_ROUNDS triples.
"""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import rclpy
from geometry_msgs.msg import Twist
from ports import free_port
from processes import executable
from rclpy.node import Node
from rclpy.qos import QoSProfile
from step import OK
from testbed_peer import CONSTANTS, TestbedPeer

from drone_bridge.testbed.codec import AttitudeLayout

READY_S = 20.0
WARM_UP_S = 2.0  # after the first messages, because discovery is still in progress
FRAME_RATE_HZ = 30.0
COMMAND_PERIOD_S = 0.05
BARE, BRIDGE, OLDER = "bare script", "bridge", "older bridge"
LEAST_TRIPLES, MOST_TRIPLES = 5, 60
SMALL_ERROR = 0.02
_CPU_CLOCK_OF_A_PROCESS = 2  # CPUCLOCK_SCHED: Linux's number for the CPU clocks of other processes


@dataclass(frozen=True, slots=True)
class Load:
    """What a bridge has to do. Cost is per message of its first topic."""

    kind: str
    topics: dict[str, str]  # package/type by topic
    size: tuple[int, int] = (0, 0)  # of a testbed's cameras, pixels
    parameters: dict[str, object] = field(default_factory=dict)


_POSE = {"imu/data": "sensor_msgs/Imu", "odom": "nav_msgs/Odometry"}
_SEVEN = {
    **{f"{side}/image_raw": "sensor_msgs/Image" for side in ("left", "right")},
    **{f"{side}/camera_info": "sensor_msgs/CameraInfo" for side in ("left", "right")},
    **_POSE,
    "/tf": "tf2_msgs/TFMessage",
}
LOADS = {
    "testbed 320x240": Load("testbed", _SEVEN, (320, 240)),
    "testbed 1280x720": Load("testbed", _SEVEN, (1280, 720)),
    "ardrone full navdata": Load("ardrone", _POSE, parameters={"navdata": "full"}),
}


class Subscriber(Node):
    """Counts messages by topic, and commands the vehicle."""

    def __init__(self, namespace: str, topics: dict[str, str]) -> None:
        super().__init__("overhead", namespace=namespace)
        self.counts: Counter[str] = Counter()
        for topic, name in topics.items():
            package, kind = name.split("/")
            message, depth = getattr(import_module(f"{package}.msg"), kind), 1 if kind == "Image" else 100
            count: Any = partial(self._count, topic)
            self.create_subscription(message, topic, count, depth, raw=True)
        self._velocity = self.create_publisher(Twist, "cmd_vel", QoSProfile(depth=1))
        self.create_timer(COMMAND_PERIOD_S, self._command)

    def _count(self, topic: str, _: object) -> None:
        self.counts[topic] += 1

    def _command(self) -> None:
        twist = Twist()
        twist.linear.x, twist.angular.z = 0.5, 0.5 * math.sin(time.monotonic())  # each differs from the one before
        self._velocity.publish(twist)

    def spin(self, seconds: float, until: int | None = None) -> bool:
        """Run for this long, or until this many topics have arrived; return whether they have."""
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0 and (until is None or len(self.counts) < until):
            rclpy.spin_once(self, timeout_sec=left_s)
        return until is not None and len(self.counts) >= until


@contextlib.contextmanager
def started(command: Sequence[str], **variables: str) -> Iterator[int]:
    """Run a program, and yield its process ID."""
    process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(READY_S)


@contextlib.contextmanager
def testbed(width: int, height: int) -> Iterator[dict[str, int]]:
    """Play a testbed that sends the same frames at 30 Hz, and yield its port."""
    peer, constants = TestbedPeer(AttitudeLayout.POSE), replace(CONSTANTS, width=width, height=height)
    pose = {"roll": 0.0, "yaw": 0.0, "position": (0.0, 1.0, 0.0)}

    def play() -> None:
        with contextlib.suppress(OSError, AssertionError):  # the subject has ended
            peer.open(constants)
            due_at = began_at = time.monotonic()
            while True:
                peer.exchange(constants=constants, time=due_at - began_at, **pose)
                due_at += 1 / FRAME_RATE_HZ
                time.sleep(max(0.0, due_at - time.monotonic()))

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield {"port": peer.port}
    finally:
        thread.join()
        peer.close()


@contextlib.contextmanager
def ardrone() -> Iterator[dict[str, int]]:
    """Run the emulator of an AR.Drone in flight, and yield its ports."""
    ports = {name: free_port() for name in ("port", "navdata_port", "control_port", "video_port")}
    options = [f"--{name.replace('_', '-')}={number}" for name, number in ports.items()]
    command = [
        sys.executable,
        "-m",
        "drone_bridge.ardrone.vehicle.emulator",
        "--bootstrapped",
        "--in-the-air",
        *options,
    ]
    with started(command):
        yield ports


def measure(load: Load, side: str, seconds: float) -> tuple[float, Counter[str]]:
    """Return the CPU per message of the first topic, ms, and the number of messages of each topic."""
    namespace = f"/overhead_{time.monotonic_ns()}"
    with contextlib.ExitStack() as stack:
        ports = stack.enter_context(testbed(*load.size) if load.kind == "testbed" else ardrone())
        settings = [word for name, value in {**ports, **load.parameters}.items() for word in ("-p", f"{name}:={value}")]
        if side == BARE:
            script = Path(__file__).with_name("bare_scripts.py")
            numbers = [str(number) for name, number in ports.items() if name in ("port", "navdata_port")]
            command, variables = [sys.executable, str(script), load.kind, namespace, *numbers], {}
        else:
            command = [executable(f"{load.kind}_bridge"), "--ros-args", "-r", f"__ns:={namespace}", *settings]
            variables = {"PYTHONPATH": os.environ["MEASURE_TREE"]} if side == OLDER else {}
        pid = stack.enter_context(started(command, **variables))
        node = Subscriber(namespace, load.topics)
        stack.callback(node.destroy_node)
        if not node.spin(READY_S, until=len(load.topics)):
            raise TimeoutError(f"{side}: only {', '.join(node.counts) or 'no topic'} within {READY_S:g} s")
        node.spin(WARM_UP_S)
        node.counts.clear()
        before_s = _cpu_s(pid)
        node.spin(seconds)
        spent_s, counts = _cpu_s(pid) - before_s, node.counts.copy()
    return 1000 * spent_s / counts[next(iter(load.topics))], counts


def _cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, s."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS)


def chosen_loads() -> list[tuple[str, Load]]:
    """Return the loads that are to be measured."""
    return [(name, load) for name, load in LOADS.items() if re.search(os.environ.get("MEASURE_ONLY", ""), name)]


def compare(name: str, load: Load, rounds: int, seconds: float) -> None:
    """Measure all sides in turn, and print a row for each: median, smallest and largest values."""
    sides = [BARE, BRIDGE]
    costs_ms: dict[str, list[float]] = {side: [] for side in sides}
    counts = {side: Counter[str]() for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            cost_ms, counted = measure(load, side, seconds)
            costs_ms[side].append(cost_ms)
            counts[side] += counted
    for side, each in costs_ms.items():
        ratio = median(ours / bare for ours, bare in zip(each, costs_ms[BARE], strict=True))
        rates = ", ".join(f"{topic} {counts[side][topic] / rounds / seconds:.1f}" for topic in load.topics)
        print(
            f"| {name} | {side} | {median(each):.3f} ms ({min(each):.3f} to {max(each):.3f}) | {ratio:.2f} | {rates} |",
            flush=True,
        )


def compare_with_older(name: str, load: Load, most: int, seconds: float) -> None:
    """Measure this version between two turns of the older one, and print the ratio with its standard error."""
    ratios: list[float] = []
    costs_ms: dict[str, list[float]] = {OLDER: [], BRIDGE: []}
    error = math.inf
    while len(ratios) < min(LEAST_TRIPLES, most) or (error > SMALL_ERROR and len(ratios) < most):
        before_ms, ours_ms, after_ms = (measure(load, side, seconds)[0] for side in (OLDER, BRIDGE, OLDER))
        ratios.append(2 * ours_ms / (before_ms + after_ms))
        costs_ms[OLDER] += before_ms, after_ms
        costs_ms[BRIDGE].append(ours_ms)
        error = stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.inf
    older_ms, ours_ms = median(costs_ms[OLDER]), median(costs_ms[BRIDGE])
    print(
        f"| {name} | {older_ms:.3f} ms | {ours_ms:.3f} ms | {mean(ratios):.3f} ± {error:.3f} "
        f"(median {median(ratios):.3f}) | {len(ratios)} |",
        flush=True,
    )


def main(short: bool) -> int:
    """Measure all loads, and print a table."""
    if "MEASURE_TREE" in os.environ:
        most = int(os.environ.get("MEASURE_ROUNDS") or (LEAST_TRIPLES if short else MOST_TRIPLES))
        seconds = float(os.environ.get("MEASURE_SECONDS") or 4)
        print("| load | older bridge | this bridge | ratio and its standard error | triples |")
        print("|---|---|---|---|---|")
        rclpy.init()
        for name, load in chosen_loads():
            compare_with_older(name, load, most, seconds)
        return OK
    rounds = int(os.environ.get("MEASURE_ROUNDS") or (2 if short else 5))
    seconds = float(os.environ.get("MEASURE_SECONDS") or (4 if short else 8))
    print("| load | side | CPU per message of the first topic | of the script's | messages per second |")
    print("|---|---|---|---|---|")
    rclpy.init()
    for name, load in chosen_loads():
        compare(name, load, rounds, seconds)
    return OK
