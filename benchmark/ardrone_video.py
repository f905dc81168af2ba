# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of full navdata and of H.264 in ardrone_bridge, as part of ardrone.py (see README.md).

An emulated drone flies. In its place, this process sends the video: captured frames of a real one, at their rate.
"""

import contextlib
import json
import os
import random
import select
import socket
import sys
import tempfile
import time
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from children import Child, ChildError, cpu_s
from domains import DOMAINS
from dronegui_video import percentiles_ms, worker_of
from system import READY_TIMEOUT_S, bridge_command, free_port, script_command
from table import spread

from drone_bridge.ardrone.codec import PaveReader, write_frame

#: 24 frames of 640 x 360, two of which need no other.
FRAMES = Path(__file__).resolve().parent.parent / "test" / "captures" / "ardrone" / "uavpilot_video.bin"
RATE_HZ = 30.0
WARM_UP_S = 2.0
TOPICS = ("sensor_msgs:Imu:imu/data", "nav_msgs:Odometry:odom")
UNSEEN, SEEN = "nobody subscribes to images", "640 x 360 at 30 Hz, one subscriber"


@dataclass(slots=True)
class Result:
    """Figures of one load in one round."""

    cpu_percent: float  # of one core; bridge and decoding child
    connections: int  # for video
    images_per_s: float
    latencies_s: list[float]  # from the last byte of a frame to the subscriber's callback


class Camera:
    """Video of an AR.Drone 2, for one client at a time."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._client: socket.socket | None = None
        self._frames = list(PaveReader().receive(FRAMES.read_bytes()))
        self.connections = self._sent = 0

    def run(self, seconds: float) -> list[float]:
        """Send for this long. Return the times at which frames were sent, s of CLOCK_REALTIME."""
        sent_s, due_s = [], time.monotonic()
        end_s = due_s + seconds
        while (now_s := time.monotonic()) < end_s:
            if now_s >= due_s:
                due_s += 1 / RATE_HZ
                if self._client:
                    sent_s.append(time.time())
                    self._send()
            if select.select([self._listening], [], [], max(0.0, min(due_s, end_s) - time.monotonic()))[0]:
                self._leave()
                self._client, self._sent = self._listening.accept()[0], 0
                self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections += 1
        return sent_s

    def close(self) -> None:
        self._leave()
        self._listening.close()

    def _send(self) -> None:
        assert self._client
        frame = self._frames[self._sent % len(self._frames)]
        self._sent += 1
        try:
            self._client.sendall(write_frame(replace(frame, number=self._sent)))
        except OSError:  # the bridge has closed it
            self._leave()

    def _leave(self) -> None:
        if self._client:
            self._client.close()
        self._client = None


def measure(load: str, seconds: float) -> Result:
    """Start a drone, a bridge and its subscribers, and measure for this long. Raises ChildError."""
    namespace = f"/benchmark_{os.getpid()}"
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        place = (random.choice(DOMAINS), Path(scratch))
        camera = stack.enter_context(contextlib.closing(Camera()))
        commands = {"subscriber": script_command("vehicles_subscriber.py", namespace, *TOPICS)}
        if load == SEEN:
            commands["subscriber of images"] = script_command("dronegui_subscriber.py", namespace)
        ports = {name: free_port(is_stream=False) for name in ("port", "navdata_port", "control_port")}
        words = [f"--{name.replace('_', '-')}={port}" for name, port in {**ports, "video_port": 0}.items()]
        emulator = [sys.executable, "-m", "drone_bridge.ardrone.emulator", *words, "--bootstrapped", "--in-the-air"]
        subscribers = {name: Child(name, command, *place) for name, command in commands.items()}
        for each in (*subscribers.values(), Child("drone", emulator, *place)):
            stack.callback(each.stop)
        parameters = {**ports, "video_port": camera.port, "navdata": "full"}
        bridge = Child("bridge", bridge_command("ardrone_bridge", namespace, **parameters), *place)
        stack.callback(bridge.stop)
        limit_s = time.monotonic() + READY_TIMEOUT_S
        while not all(each.has_spoken for each in subscribers.values()):
            camera.run(0.2)
            if time.monotonic() > limit_s:
                bridge.check()
                raise ChildError(f"Not all messages came within {READY_TIMEOUT_S:g} s.")
        camera.run(WARM_UP_S)
        worker = worker_of(bridge.pid)
        pids = [bridge.pid, worker] if worker else [bridge.pid]
        began_s, before_s = time.monotonic(), sum(map(cpu_s, pids))
        sent_s = camera.run(seconds)
        used_s, lasted_s = sum(map(cpu_s, pids)) - before_s, time.monotonic() - began_s
        connections = camera.connections
    came = json.loads(subscribers["subscriber of images"].lines[-1]) if load == SEEN else []
    latencies_s = [
        came_s - sent_s[bisect_right(sent_s, stamp_s) - 1]
        for stamp_s, came_s in came
        if sent_s and sent_s[0] <= stamp_s <= sent_s[-1] + 1 / RATE_HZ
    ]
    return Result(100 * used_s / lasted_s, connections, len(latencies_s) / lasted_s, latencies_s)


def measure_video(rounds: int, seconds: float) -> None:
    """Measure both loads in each round, and print the medians. Raises ChildError."""
    print("\nFull navdata, one subscriber of imu/data and odom; CPU of the bridge and of the child that decodes.\n")
    results: dict[str, list[Result]] = defaultdict(list)
    for number in range(rounds):
        for load in (UNSEEN, SEEN) if number % 2 == 0 else (SEEN, UNSEEN):
            results[load].append(measure(load, seconds))
    unseen, seen = ([each.cpu_percent for each in results[load]] for load in (UNSEEN, SEEN))
    more = [ours - base for ours, base in zip(seen, unseen, strict=True)]
    p50_ms, p99_ms = percentiles_ms([age for each in results[SEEN] for age in each.latencies_s])
    for load, measured in results.items():
        print(f"{load}: CPU {spread([each.cpu_percent for each in measured], 1)} % of a core", end="")
        print(f", {median(each.images_per_s for each in measured):.1f} images per second", flush=True)
    print(f"last byte to callback {p50_ms:.1f} ms (p50), {p99_ms:.1f} ms (p99)")
    aims = {
        "full navdata, CPU (%)": (median(unseen), 15.0),
        "video, one subscriber, CPU beyond that (%)": (median(more), 10.0),
        "last byte to callback, p50 (ms)": (p50_ms, 15.0),
        "connections for video without a subscriber": (sum(each.connections for each in results[UNSEEN]), 0.0),
    }
    for name, (value, aim) in aims.items():
        print(f"  {name}: {value:.1f}, aim <= {aim:g}, {'met' if value <= aim else 'MISSED'}", flush=True)
