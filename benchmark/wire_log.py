# SPDX-License-Identifier: Apache-2.0
"""What the wire log costs: CPU of each bridge with and without it, at the same time: python benchmark/wire_log.py."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from children import ChildError, heed_signals
from rounds import make_parser, systems, take_turns
from simulator import SimulatorSystem
from simulator_peer import ENTITIES, RATE_HZ
from system import Place, System
from table import BRIDGE, spread
from telemetry import RATE_HZ as DOCUMENTS_HZ
from telemetry import TelemetrySystem
from testbed_system import TestbedSystem

LOGGED = "bridge with wire_log"
MAX_PERCENT = 10.0  # of all but images
FRAMES_HZ = 30
FRAME = 320, 240
WRITTEN_S = 1.0  # within which everything is in the files


class Cost(NamedTuple):
    """CPU in ms per s, without and with the log, and the bytes per s that it took in the files."""

    without: float
    logged: float
    file_bytes: float

    @property
    def percent(self) -> float:
        """The increase."""
        return 100 * (self.logged - self.without) / self.without


def beside_peer(make: Callable[..., System], warm_up: Callable[..., None], run: Callable[..., None], s: float) -> Cost:
    """Measure two bridges in turns, each with a peer in this process."""
    with tempfile.TemporaryDirectory() as folder:

        def make_side(side: str, place: Place) -> System:
            system = make(BRIDGE, place, **({"wire_log": folder} if side == LOGGED else {}))
            system.side = side
            return system

        with systems(make_side, [BRIDGE, LOGGED]) as pair:
            for system in pair:
                warm_up(system)
            time.sleep(WRITTEN_S)
            before = _file_bytes(folder)
            measured = take_turns(pair, run, s)
            time.sleep(WRITTEN_S)
            written = _file_bytes(folder) - before
    without, logged = measured[BRIDGE], measured[LOGGED]
    return Cost(10 * without.cpu_percent, 10 * logged.cpu_percent, written / logged.seconds)


def frames(seconds: float, *, noise: bool, pixels: bool = True) -> Cost:
    """Measure stereo frames: flat colours, as many scenes have, or noise, which can't be compressed."""

    def warm_up(system: TestbedSystem) -> None:
        system.open(FRAME, noise=os.urandom if noise else None)
        system.warm_up()

    run = partial(TestbedSystem.paced, rate_hz=FRAMES_HZ)
    make = partial(TestbedSystem, control=False, wire_log_images=pixels)
    return beside_peer(make, warm_up, run, seconds)


def loads() -> Iterator[tuple[str, Callable[[float], Cost]]]:
    """Yield what is measured, beside peers that send as much as one can."""
    size = f"stereo {FRAME[0]} x {FRAME[1]}, {FRAMES_HZ} Hz"
    yield f"testbed, {size}, flat", partial(frames, noise=False)
    yield f"testbed, {size}, noise", partial(frames, noise=True)
    yield f"testbed, {size}, without pixels", partial(frames, noise=True, pixels=False)
    simulator = partial(beside_peer, SimulatorSystem, SimulatorSystem.warm_up, SimulatorSystem.paced)
    yield f"simulator, {ENTITIES * RATE_HZ:.0f} stream messages/s", simulator
    telemetry = partial(beside_peer, TelemetrySystem, TelemetrySystem.warm_up, TelemetrySystem.measure)
    yield f"telemetry, {DOCUMENTS_HZ:.0f} documents/s of 14 kB", telemetry


def main() -> int:
    """Measure all and print it."""
    parser: argparse.ArgumentParser = make_parser(__doc__, seconds=8.0)
    parser.add_argument("--only", default="", help="loads with this in their name")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 2.0
    heed_signals()
    print(f"CPU in ms per s, which is 0.1 % of a core; medians of {options.rounds} rounds, with minimum and maximum\n")
    print(f"{'':49}{'without':22}{'with':22}{'more (%)':24}{'file, kB/s':12}aim")
    try:
        for name, measure in loads():
            if options.only not in name:
                continue
            costs = [measure(options.seconds) for _ in range(options.rounds)]
            is_less = median(cost.percent for cost in costs) < MAX_PERCENT
            cells = (
                f"{spread([cost.without for cost in costs], 1):22}"
                f"{spread([cost.logged for cost in costs], 1):22}"
                f"{spread([cost.percent for cost in costs], 1):24}"
                f"{median(cost.file_bytes for cost in costs) / 1000:<12.1f}"
            )
            print(f"{name:49}{cells}< {MAX_PERCENT:g} %, {'met' if is_less else 'MISSED'}", flush=True)
    except ChildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _file_bytes(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob("*.mcap"))


if __name__ == "__main__":
    sys.exit(main())
