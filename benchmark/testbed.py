# SPDX-License-Identifier: Apache-2.0
"""Compare testbed_bridge with the least that a bare script can do: python benchmark/testbed.py (see README.md)."""

import argparse
import contextlib
import itertools
import os
import platform
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import table
from children import ChildError
from system import Measurement, Received, Size, System
from table import BRIDGE, FLOOR, Samples

TURNS: Final = 4  # each measurement of a round is cut into so many, the two sides alternating
DOMAINS: Final = range(1, 102)  # beyond these, ROS's ports collide with those that Linux gives to clients
SMALL: Final = (64, 48)  # pixels: for the memory test, where the number of frames matters
CHECKPOINTS: Final = (1_000, 10_000, 50_000, 100_000)  # frames
FLAT_MEBIBYTES: Final = 1.0  # by which the last checkpoints may differ from the second one
MEBIBYTE: Final = 1024 * 1024


@contextlib.contextmanager
def systems(sides: list[str], control: bool, notes: dict[str, dict[int, Received]]) -> Iterator[list[System]]:
    """Start these sides; at the end stop them and leave what their subscribers got in `notes`."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        started = []
        for side, domain in zip(sides, random.sample(DOMAINS, len(sides)), strict=True):
            system = System(side, domain, control, Path(scratch))
            stack.callback(_stop, system, notes)
            started.append(system)
        yield started


def prepare(pair: list[System], size: Size) -> None:
    """Make both sides ready to be measured with cameras of this size."""
    for system in pair:
        system.open(size)
    for system in pair:
        system.warm_up()


def take_turns(
    pair: list[System], measure: Callable[[System, Measurement, float], None], seconds: float
) -> dict[str, Measurement]:
    """Measure both sides for so long each, changing from one to the other and back several times."""
    measurements = {system.side: system.begin() for system in pair}
    for turn in range(TURNS):
        for system in pair if turn % 2 == 0 else reversed(pair):
            measure(system, measurements[system.side], seconds / TURNS)
    return measurements


def measure_latest(sides: list[str], sizes: list[Size], seconds: float, samples: Samples) -> None:
    """One round without a controller: unpaced, then at 30 Hz."""
    unpaced: dict[str, dict[str, Measurement]] = {}
    paced: dict[str, dict[str, Measurement]] = {}
    notes: dict[str, dict[int, Received]] = {}
    with systems(sides, False, notes) as pair:
        for size in sizes:
            prepare(pair, size)
            unpaced[_name(size)] = take_turns(pair, System.unpaced, seconds)
            paced[_name(size)] = take_turns(pair, System.paced, seconds)
    for name, side in itertools.product(unpaced, sides):
        measured = unpaced[name][side]
        received = notes[side][measured.number]
        samples.add(name, table.FRAMES_PER_SECOND, side, measured.frames_per_second)
        samples.add(name, table.CPU, side, measured.cpu_per_frame_ms)
        samples.add(name, table.DELIVERED, side, 100 * received.images / (2 * len(measured.round_trips_s)))
        measured = paced[name][side]
        received = notes[side][measured.number]
        samples.add(name, table.LATENCY_P50, side, 1000 * median(received.latencies_s))
        samples.add(name, table.LATENCY_P99, side, 1000 * quantiles(received.latencies_s, n=100)[98])
        samples.add(name, table.CPU_PACED, side, measured.cpu_per_frame_ms)
        samples.add(name, table.ROUND_TRIP, side, measured.round_trip_ms)


def measure_lockstep(sides: list[str], sizes: list[Size], seconds: float, samples: Samples) -> None:
    """One round with a controller that answers each frame."""
    with systems(sides, True, {}) as pair:
        for size in sizes:
            prepare(pair, size)
            for side, measured in take_turns(pair, System.unpaced, seconds).items():
                samples.add(_name(size), table.ROUND_TRIP_CONTROLLED, side, measured.round_trip_ms)


def measure_memory(checkpoints: tuple[int, ...]) -> None:
    """Print the bridge's resident memory after so many frames."""
    print(f"\nResident memory of the bridge, stereo {_name(SMALL)}, unpaced, one subscriber:")
    resident = []
    with systems([BRIDGE], False, {}) as [system]:
        prepare([system], SMALL)
        measurement = system.begin()
        for checkpoint in checkpoints:
            system.frames(measurement, checkpoint - len(measurement.round_trips_s))
            resident.append(system.subject.resident_bytes() / MEBIBYTE)
            print(f"  {checkpoint:>7} frames  {resident[-1]:.1f} MiB", flush=True)
    grown = max(resident[1:]) - resident[1]
    verdict = "met" if grown <= FLAT_MEBIBYTES else "MISSED"
    print(f"  grown after frame {checkpoints[1]}: {grown:.2f} MiB, aim <= {FLAT_MEBIBYTES:g} MiB, {verdict}")


def main() -> int:
    """Run all measurements and print them."""
    options = parse_options()
    # SIGTERM ends what was started like Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began_s = time.monotonic()
    samples = Samples()
    try:
        for number in range(options.rounds):
            sides = [FLOOR, BRIDGE] if number % 2 == 0 else [BRIDGE, FLOOR]
            print(f"round {number + 1} of {options.rounds}: {', then '.join(sides)}", flush=True)
            measure_latest(sides, options.sizes, options.seconds, samples)
            measure_lockstep(sides, options.sizes, options.seconds, samples)
        print(f"\n{describe(options)}\n\n{samples.render()}", flush=True)
        measure_memory(tuple(frames // options.memory_divisor for frames in CHECKPOINTS))
    except ChildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"\n{time.monotonic() - began_s:.0f} s in all")
    return 0


def describe(options: argparse.Namespace) -> str:
    """Return how it was measured."""
    return (
        f"{options.rounds} interleaved rounds of {options.seconds:g} s per measurement, on {os.cpu_count()} cores of "
        f"{platform.machine()}, Python {platform.python_version()}.\n"
        "Each value is the median of the rounds, with the least and the greatest; each ratio is the median of the "
        "ratios within a round."
    )


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often both sides are measured (default 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement (default 2)")
    parser.add_argument(
        "--sizes", type=_size, nargs="+", default=[(320, 240), (640, 480), (1280, 720)], metavar="WIDTHxHEIGHT"
    )
    parser.add_argument("--quick", action="store_true", help="2 short rounds, and a tenth of the frames for memory")
    options = parser.parse_args()
    options.memory_divisor = 1
    if options.quick:
        options.rounds, options.seconds, options.memory_divisor = 2, 1.0, 10
    return options


def _size(text: str) -> Size:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text} is no size; it has to look like 640x480.")
    return int(width), int(height)


def _stop(system: System, notes: dict[str, dict[int, Received]]) -> None:
    notes[system.side] = system.stop()


def _name(size: Size) -> str:
    return f"{size[0]} x {size[1]}"


if __name__ == "__main__":
    sys.exit(main())
