# SPDX-License-Identifier: Apache-2.0
"""What the wire log costs: CPU of testbed_bridge with and without it, in turns: python benchmark/wire_log.py."""

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from rounds import make_parser, systems, take_turns
from system import Place
from table import BRIDGE
from testbed_system import Size, TestbedSystem

WITHOUT: Final = BRIDGE
LOGGED: Final = "bridge with wire_log"
MOST_PERCENT: Final = 5.0
#: Flat colours, as the scenes of testbeds have them, and noise, of which nothing can be saved.
PICTURES: Final = ("flat", "noise")


def make(folder: Path, side: str, place: Place) -> TestbedSystem:
    """Start a side."""
    parameters: dict[str, object] = {"wire_log": folder, "wire_log_mebibytes": 512} if side == LOGGED else {}
    return TestbedSystem(BRIDGE, place, control=False, **parameters)


def measure(size: Size, picture: str, seconds: float) -> tuple[float, float]:
    """Return the CPU per frame at 30 Hz without and with the log, ms."""
    with tempfile.TemporaryDirectory() as folder, systems(partial(make, Path(folder)), [WITHOUT, LOGGED]) as pair:
        for system, side in zip(pair, (WITHOUT, LOGGED), strict=True):
            system.side = side
            system.open(size, noise=os.urandom if picture == "noise" else None)
        for system in pair:
            system.warm_up()
        measured = take_turns(pair, partial(TestbedSystem.paced, rate_hz=30), seconds)
    return measured[WITHOUT].cpu_per_item_ms, measured[LOGGED].cpu_per_item_ms


def main() -> int:
    """Measure all and print it; return 0 when the aim is met."""
    parser: argparse.ArgumentParser = make_parser(__doc__, seconds=8.0)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 4.0
    is_met = True
    size = (320, 240)
    print(f"Stereo {size[0]} x {size[1]} at 30 Hz, one subscriber; medians of {options.rounds} rounds")
    for picture in PICTURES:
        rounds = [measure(size, picture, options.seconds) for _ in range(options.rounds)]
        without, logged = (median(values) for values in zip(*rounds, strict=True))
        percent = median(100 * (after - before) / before for before, after in rounds)
        verdict = "" if picture == "noise" else f", aim < {MOST_PERCENT:g} %: "
        if verdict:
            is_met = percent < MOST_PERCENT
            verdict += "met" if is_met else "MISSED"
        print(f"  {picture:6} {without:.2f} ms of CPU per frame, logged {logged:.2f} ms: {percent:+.1f} %{verdict}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
