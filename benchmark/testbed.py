# SPDX-License-Identifier: Apache-2.0
"""Compare testbed_bridge with the least that a bare script can do: python benchmark/testbed.py (see README.md)."""

import argparse
import itertools
import sys
from functools import partial
from statistics import median

from rounds import make_parser, run, systems, take_turns
from system import Measurement, Place, System
from table import BRIDGE, Metric, Samples
from testbed_system import Flown, Size, TestbedSystem

FRAMES_PER_SECOND = Metric("frames/s, unpaced", 0, at_least=0.95)
#: By frames per second, which are what people run: how long it is measured, as a share of the length of a measurement.
#: There are few frames at 10 Hz, and enough at 60.
PACED_SHARES = {10: 1.5, 30: 1.0, 60: 0.5}
#: An image is one of the two of a frame.
CPU_PACED = {rate_hz: Metric(f"CPU per image at {rate_hz} Hz (ms)", 3, at_most=1.1) for rate_hz in PACED_SHARES}
LATENCY_HZ = 30
LATENCY_P50 = Metric(f"latency at {LATENCY_HZ} Hz, p50 (ms)", 2, at_most=1.05)
LATENCY_P99 = Metric(f"latency at {LATENCY_HZ} Hz, p99 (ms)", 2, at_most=1.2, percentile=99)
ROUND_TRIP = Metric("round trip, no controller (ms)", 2, at_most=1.1)
ROUND_TRIP_CONTROLLED = Metric("round trip, controller (ms)", 2, at_most=1.1)

SMALL = (64, 48)  # pixels: for the memory test, where the number of frames matters
CHECKPOINTS = (1_000, 10_000, 50_000, 100_000)  # frames
FLAT_MEBIBYTES = 1.0  # by which the last checkpoints may differ from the second one
MEBIBYTE = 1024 * 1024


def prepare(pair: list[TestbedSystem], size: Size) -> None:
    """Make both sides ready to be measured with cameras of this size."""
    for system in pair:
        system.open(size)
    for system in pair:
        system.warm_up()


def measure_latest(sides: list[str], sizes: list[Size], seconds: float, samples: Samples) -> None:
    """One round without a controller: unpaced, then at each of the rates that people run."""
    unpaced: dict[str, dict[str, Measurement]] = {}
    paced: dict[tuple[str, int], dict[str, Measurement]] = {}
    with systems(without_control, sides) as pair:
        for size in sizes:
            prepare(pair, size)
            unpaced[_name(size)] = take_turns(pair, TestbedSystem.unpaced, seconds)
            for rate_hz, share in PACED_SHARES.items():
                paced[_name(size), rate_hz] = take_turns(
                    pair, partial(TestbedSystem.paced, rate_hz=rate_hz), share * seconds
                )
    for name, system in itertools.product(unpaced, pair):
        side = system.side
        measured = unpaced[name][side]
        samples.add(name, FRAMES_PER_SECOND, side, measured.items_per_second)
        for rate_hz, metric in CPU_PACED.items():
            samples.add(name, metric, side, paced[name, rate_hz][side].cpu_per_item_ms / 2)
        measured = paced[name, LATENCY_HZ][side]
        received = system.received(measured)
        samples.add(name, LATENCY_P50, side, 1000 * median(received.latencies_s))
        samples.add(name, LATENCY_P99, side, *(1000 * latency_s for latency_s in received.latencies_s))
        samples.add(name, ROUND_TRIP, side, measured.round_trip_ms)


def measure_lockstep(sides: list[str], sizes: list[Size], seconds: float, samples: Samples) -> None:
    """One round with a controller that answers each frame."""
    with systems(with_control, sides) as pair:
        for size in sizes:
            prepare(pair, size)
            for side, measured in take_turns(pair, TestbedSystem.unpaced, seconds).items():
                samples.add(_name(size), ROUND_TRIP_CONTROLLED, side, measured.round_trip_ms)


def measure_memory(checkpoints: tuple[int, ...]) -> None:
    """Print the bridge's resident memory after so many frames."""
    print(f"\nResident memory of the bridge, stereo {_name(SMALL)}, unpaced, one subscriber:")
    resident = []
    with systems(without_control, [BRIDGE]) as [system]:
        prepare([system], SMALL)
        measurement = system.begin()
        for checkpoint in checkpoints:
            system.frames(measurement, checkpoint - measurement.items)
            resident.append(system.subject.resident_bytes() / MEBIBYTE)
            print(f"  {checkpoint:>7} frames  {resident[-1]:.1f} MiB", flush=True)
    grown = max(resident[1:]) - resident[1]
    verdict = "met" if grown <= FLAT_MEBIBYTES else "MISSED"
    print(f"  grown after frame {checkpoints[1]}: {grown:.2f} MiB, aim <= {FLAT_MEBIBYTES:g} MiB, {verdict}")


def without_control(side: str, place: Place) -> TestbedSystem:
    """Start a side that answers at once."""
    return TestbedSystem(side, place, control=False)


def with_control(side: str, place: Place) -> TestbedSystem:
    """Start a side that answers with a controller's commands."""
    return TestbedSystem(side, place, control=True)


def main() -> int:
    """Run all measurements and print them."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--sizes", type=_size, nargs="+", default=[(320, 240), (640, 480), (1280, 720)], metavar="WIDTHxHEIGHT"
    )
    parser.add_argument("--default-malloc", action="store_true", help="leave the subscribers' malloc untuned")
    parser.add_argument(
        "--drone", type=Flown, choices=[*Flown], default=Flown.MOVING, help="moving, commanded or still (%(default)s)"
    )
    options = parser.parse_args()
    TestbedSystem.flown = options.drone
    if options.default_malloc:
        System.helper_environment = {}
    samples = Samples(f"stereo, {options.drone.value}")

    def measure_round(seconds: float, sides: list[str]) -> None:
        measure_latest(sides, options.sizes, seconds, samples)
        measure_lockstep(sides, options.sizes, seconds, samples)

    divisor = 10 if options.quick else 1
    checkpoints = tuple(frames // divisor for frames in CHECKPOINTS)
    return run(options, samples, measure_round, partial(measure_memory, checkpoints))


def _size(text: str) -> Size:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text} is no size; it has to look like 640x480.")
    return int(width), int(height)


def _name(size: Size) -> str:
    return f"{size[0]} x {size[1]}"


if __name__ == "__main__":
    sys.exit(main())
