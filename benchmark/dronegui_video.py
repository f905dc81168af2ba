# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of the AR.Drone's video in dronegui_bridge, as part of dronegui.py (see README.md).

A GUI in this process sends the same packet of the front camera repeatedly, and receives the control packets.
"""

import contextlib
import json
import os
import random
import select
import socket
import tempfile
import time
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from children import Child, ChildError, cpu_s
from domains import DOMAINS
from system import READY_TIMEOUT_S, bridge_command, free_port, script_command
from table import spread

PACKET = Path(__file__).resolve().parent.parent / "test" / "captures" / "dronegui_video" / "qvga_q31.bin"
WARM_UP_S = 2.0
CONTROL_PERIOD_S = 0.05  # of the bridge, by default
#: Part of the command line that identifies the decoding child.
WORKER = "pictures.worker"


@dataclass(frozen=True, slots=True)
class Load:
    """Packets per second, and whether there is a subscriber to the images."""

    name: str
    rate_hz: float
    has_subscriber: bool = False


SILENT = Load("no video", 0.0)
UNSEEN = Load("15 Hz, nobody subscribes", 15.0)
SEEN = Load("15 Hz, one subscriber", 15.0, has_subscriber=True)
FLOOD = Load("1,000 Hz, one subscriber", 1000.0, has_subscriber=True)
LOADS = (SILENT, UNSEEN, SEEN, FLOOD)


@dataclass(slots=True)
class Result:
    """Figures of one load in one round."""

    cpu_percent: float  # of one core; bridge and decoding child
    images_per_s: float
    latencies_s: list[float]  # from the datagram to the subscriber's callback
    deviations_s: list[float]  # of the control packets' intervals from their period


class Gui:
    """Receives control packets, and sends video."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.video_port = free_port(is_stream=False)
        self._packet = PACKET.read_bytes()

    def run(self, seconds: float, rate_hz: float) -> tuple[list[float], list[float]]:
        """Return times of sent video packets, s of CLOCK_REALTIME, and of received control packets, CLOCK_MONOTONIC."""
        sent_s, came_s = [], []
        now_s = due_s = time.monotonic()
        end_s = now_s + seconds
        period_s = 1 / rate_hz if rate_hz else seconds
        while now_s < end_s:
            if rate_hz and now_s >= due_s:
                due_s = max(due_s + period_s, now_s)
                sent_s.append(time.time())
                self._socket.sendto(self._packet, ("127.0.0.1", self.video_port))
            until_s = min(due_s if rate_hz else end_s, end_s)
            if select.select([self._socket], [], [], max(0.0, until_s - time.monotonic()))[0]:
                came_s.append(time.monotonic())
                self._socket.recv(65535)
            now_s = time.monotonic()
        return sent_s, came_s

    def close(self) -> None:
        self._socket.close()


def measure(load: Load, seconds: float) -> Result:
    """Start a bridge, and a subscriber if the load has one, and measure for this long. Raises ChildError."""
    namespace = f"/benchmark_{os.getpid()}"
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        place = (random.choice(DOMAINS), Path(scratch))
        gui = stack.enter_context(contextlib.closing(Gui()))
        subscriber = None
        if load.has_subscriber:
            subscriber = Child("subscriber", script_command("dronegui_subscriber.py", namespace), *place)
            stack.callback(subscriber.stop)
        ports = {"port": gui.port, "navdata_port": free_port(is_stream=False), "video_port": gui.video_port}
        bridge = Child("bridge", bridge_command("dronegui_bridge", namespace, **ports), *place)
        stack.callback(bridge.stop)
        _warm_up(gui, load, bridge, subscriber)
        worker = worker_of(bridge.pid)
        pids = [bridge.pid, worker] if worker else [bridge.pid]
        began_s, before_s = time.monotonic(), sum(map(cpu_s, pids))
        sent_s, controls_s = gui.run(seconds, load.rate_hz)
        used_s, lasted_s = sum(map(cpu_s, pids)) - before_s, time.monotonic() - began_s
    came = json.loads(subscriber.lines[-1]) if subscriber else []
    latencies_s = [
        came_s - sent_s[bisect_right(sent_s, stamp_s) - 1]
        for stamp_s, came_s in came
        if sent_s[0] <= stamp_s <= sent_s[-1] + 1 / load.rate_hz
    ]
    intervals_s = (later_s - earlier_s for earlier_s, later_s in pairwise(controls_s))
    return Result(
        cpu_percent=100 * used_s / lasted_s,
        images_per_s=len(latencies_s) / lasted_s,
        latencies_s=latencies_s,
        deviations_s=[abs(interval_s - CONTROL_PERIOD_S) for interval_s in intervals_s],
    )


def _warm_up(gui: Gui, load: Load, bridge: Child, subscriber: Child | None) -> None:
    """Send until control packets and, with a subscriber, images arrive, and some more. Raises ChildError."""
    limit_s, is_ready = time.monotonic() + READY_TIMEOUT_S, False
    while not is_ready:
        _, came_s = gui.run(0.2, load.rate_hz)
        is_ready = bool(came_s) and (subscriber is None or subscriber.has_spoken)
        if time.monotonic() > limit_s:
            bridge.check()
            raise ChildError(f"No images and control packets came within {READY_TIMEOUT_S:g} s.")
    gui.run(WARM_UP_S, load.rate_hz)


def worker_of(pid: int) -> int | None:
    """Return the process ID of the decoding child, None without one."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            if parent == pid and WORKER in (path.parent / "cmdline").read_text():
                return int(path.parent.name)
    return None


def measure_video(rounds: int, seconds: float) -> None:
    """Measure all loads in each round, and print the medians. Raises ChildError."""
    print("\nVideo: packets of 17 kB, 320 x 240; CPU of the bridge and of the child that decodes.\n", flush=True)
    results: dict[Load, list[Result]] = defaultdict(list)
    for number in range(rounds):
        for load in LOADS if number % 2 == 0 else reversed(LOADS):
            results[load].append(measure(load, seconds))
    silent = [each.cpu_percent for each in results[SILENT]]
    more = {load: _differences(results[load], silent) for load in LOADS}
    late_ms = {load: percentiles_ms([late for each in results[load] for late in each.deviations_s]) for load in LOADS}
    for load in LOADS:
        print(f"{load.name}: CPU {spread([each.cpu_percent for each in results[load]], 1)} % of a core", end="")
        print(f", control packets off by {late_ms[load][1]:.1f} ms (p99)", end="")
        if load.has_subscriber:
            p50_ms, p99_ms = percentiles_ms([age for each in results[load] for age in each.latencies_s])
            images = median(each.images_per_s for each in results[load])
            print(
                f", {images:.1f} images per second, {10 * median(more[load]) / images:.1f} ms of CPU per image", end=""
            )
            print(f", datagram to callback {p50_ms:.1f} ms (p50), {p99_ms:.1f} ms (p99)", end="")
        print(flush=True)
    aims = {
        "one subscriber, CPU (%)": (median(each.cpu_percent for each in results[SEEN]), 24.0),
        "one subscriber, datagram to callback, p50 (ms)": (
            percentiles_ms([age for each in results[SEEN] for age in each.latencies_s])[0],
            40.0,
        ),
        "nobody subscribes, CPU beyond that without video (%)": (median(more[UNSEEN]), 0.5),
        "control packets with video, p99 beyond that without (ms)": (late_ms[SEEN][1] - late_ms[SILENT][1], 3.0),
        "a flood, CPU beyond that of 15 Hz (%)": (
            median(_differences(results[FLOOD], [each.cpu_percent for each in results[SEEN]])),
            5.0,
        ),
    }
    for name, (value, aim) in aims.items():
        print(f"  {name}: {value:.1f}, aim <= {aim:g}, {'met' if value <= aim else 'MISSED'}", flush=True)


def _differences(results: list[Result], base: list[float]) -> list[float]:
    """Return the additional CPU of each round, % of a core."""
    return [each.cpu_percent - other for each, other in zip(results, base, strict=True)]


def percentiles_ms(values_s: list[float]) -> tuple[float, float]:
    """Return p50 and p99."""
    hundredths = quantiles(values_s, n=100)
    return 1000 * hundredths[49], 1000 * hundredths[98]
