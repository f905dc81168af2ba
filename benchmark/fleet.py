# SPDX-License-Identifier: Apache-2.0
"""What a fleet costs in one process, and with a process per bridge: python benchmark/fleet.py (see docs/fleet.md)."""

import argparse
import contextlib
import os
import platform
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ament_index_python.packages import get_package_prefix
from children import Child, ChildError
from domains import DOMAINS
from system import bridge_command, script_command, ticks
from testbed_peer import Peer

ONE = "one process"
EACH = "a process each"
FRAME_RATE_HZ = 10.0
SIZE = (320, 240)  # pixels of each of the two cameras
READY_TIMEOUT_S = 300.0
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """What a number of bridges cost."""

    load: str
    way: str
    count: int
    cpu_percent: float  # of one core
    private_mebibytes: float
    threads: int


class Drones:
    """Testbeds in this process, each sending frames in a thread of its own."""

    protocol, load = "testbed", "testbed, 10 Hz stereo 320 x 240"

    def __init__(self, count: int) -> None:
        self._peers = [Peer() for _ in range(count)]
        self.ports = [peer.port for peer in self._peers]
        self._stopping = threading.Event()
        self._met = [threading.Event() for _ in self._peers]
        self.frames = [0] * count
        self._threads = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(count)]

    def begin(self) -> None:
        """Start sending, once all bridges have connected."""
        for peer in self._peers:
            peer.wait_longer(READY_TIMEOUT_S)
        for thread in self._threads:
            thread.start()
        for met in self._met:
            if not met.wait(READY_TIMEOUT_S):
                raise ChildError("A bridge did not connect.")

    def end(self) -> None:
        """Stop sending, and close all connections."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for peer in self._peers:
            peer.close()

    def _send(self, number: int) -> None:
        with contextlib.suppress(OSError):
            conversation = self._peers[number].meet(*SIZE)
            self._met[number].set()
            for tick in ticks(sys.maxsize, FRAME_RATE_HZ):
                if self._stopping.is_set():
                    break
                conversation.exchange(0, tick)
                self.frames[number] += 1
            conversation.close()


@contextlib.contextmanager
def bridges(way: str, protocol: str, ports: Sequence[int], domain: int, scratch: Path) -> Iterator[list[Child]]:
    """Start bridges to these ports, in one process or one each, and stop them at the end."""
    names = [f"vehicle{number}" for number in range(len(ports))]
    if way == ONE:
        file = scratch / "fleet.yaml"
        entries = (f"  {name}: {{protocol: {protocol}, port: {port}}}" for name, port in zip(names, ports, strict=True))
        file.write_text("\n".join(["vehicles:", *entries, ""]))
        fleet = Path(get_package_prefix("drone_bridge"), "lib", "drone_bridge", "fleet")
        commands = [[str(fleet), str(file)]]
    else:
        commands = [
            bridge_command(f"{protocol}_bridge", f"/{name}", port=port) for name, port in zip(names, ports, strict=True)
        ]
    with contextlib.ExitStack() as stack:
        children = []
        for command in commands:
            children.append(Child(f"{protocol} bridge", command, domain, scratch))
            stack.callback(children[-1].stop)
        yield children


def measure(load: str, way: str, children: list[Child], count: int, seconds: float) -> Cost:
    """Return what these processes cost over so many seconds."""
    before_s, began_s = sum(child.cpu_s() for child in children), time.monotonic()
    time.sleep(seconds)
    used_s, took_s = sum(child.cpu_s() for child in children) - before_s, time.monotonic() - began_s
    return Cost(
        load,
        way,
        count,
        100 * used_s / took_s,
        sum(child.private_bytes() for child in children) / MEBIBYTE,
        sum(len(list(Path(f"/proc/{child.pid}/task").iterdir())) for child in children),
    )


def measure_drones(way: str, count: int, seconds: float) -> Cost:
    """Measure so many testbed bridges, without a subscriber."""
    drones = Drones(count)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with bridges(way, drones.protocol, drones.ports, random.choice(DOMAINS), Path(folder)) as children:
                drones.begin()
                time.sleep(seconds / 2)  # until start-up is over
                before, began_s = sum(drones.frames), time.monotonic()
                cost = measure(drones.load, way, children, count, seconds)
                rate_hz = (sum(drones.frames) - before) / (time.monotonic() - began_s) / count
                print(f"  {count} drones, {way}: {rate_hz:.1f} frames/s each", flush=True)
        finally:
            drones.end()
    return cost


def measure_robots(way: str, count: int, seconds: float) -> Cost:
    """Measure so many robot bridges, with cmd_vel at 20 Hz for each and sensors once a second."""
    domain = random.choice(DOMAINS)
    load = "robot, 20 Hz cmd_vel"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        robots = Child("robots", script_command("fleet_robots.py", str(count)), domain, Path(folder))
        stack.callback(robots.stop)
        ports = [int(port) for port in robots.wait_for_line(0, READY_TIMEOUT_S).split()]
        children = stack.enter_context(bridges(way, "robot", ports, domain, Path(folder)))
        robots.wait_for_line(1, READY_TIMEOUT_S)  # all are driven
        time.sleep(seconds / 2)
        return measure(load, way, children, count, seconds)


def render(costs: Sequence[Cost]) -> str:
    """Return the table."""
    rows = [("load", "bridges", "", "CPU (% of a core)", "private memory (MiB)", "threads")]
    rows += [
        (c.load, str(c.count), c.way, f"{c.cpu_percent:.1f}", f"{c.private_mebibytes:.0f}", str(c.threads))
        for c in costs
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|---|--:|---|--:|--:|--:|")
    return "\n".join(lines)


def draw(costs: Sequence[Cost], file: Path) -> None:
    """Write the picture of cost over the number of bridges."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    loads = list(dict.fromkeys(cost.load for cost in costs))
    figure, panels = plt.subplots(len(loads), 2, figsize=(9, 3.4 * len(loads)), squeeze=False, layout="constrained")
    for row, load in zip(panels, loads, strict=True):
        for panel, (value, what) in zip(
            row, (("cpu_percent", "% of a core"), ("private_mebibytes", "private memory, MiB")), strict=True
        ):
            for way in (ONE, EACH):
                points = sorted((c.count, getattr(c, value)) for c in costs if (c.load, c.way) == (load, way))
                if points:
                    panel.plot(*zip(*points, strict=True), "o-", label=way)
            panel.set(title=load, xlabel="bridges", ylabel=what, xlim=(0, None), ylim=(0, None))
            panel.grid(color="#e6e6e6")
            panel.legend()
    figure.savefig(file, dpi=100)


def main() -> int:
    """Measure all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drones", type=int, nargs="*", default=[1, 5, 10, 20], metavar="N")
    parser.add_argument("--robots", type=int, nargs="*", default=[1, 20, 100], metavar="N")
    parser.add_argument(
        "--max-processes",
        "--most-processes",
        type=int,
        default=20,
        help="as a process each up to so many (%(default)s)",
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of one measurement (%(default)s)")
    parser.add_argument("--picture", type=Path, help="PNG of cost over the number of bridges")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    costs = []
    try:
        for how, counts in ((measure_drones, options.drones), (measure_robots, options.robots)):
            for count in counts:
                costs += [
                    how(way, count, options.seconds)
                    for way in (ONE, EACH)
                    if way == ONE or count <= options.max_processes
                ]
    except ChildError as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"\n{options.seconds:g} s per measurement, on {os.cpu_count()} cores of {platform.machine()}, Python "
        f"{platform.python_version()}; the load of the machine was {load_before:.1f} before.\n\n{render(costs)}"
    )
    if options.picture:
        draw(costs, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
