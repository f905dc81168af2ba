# SPDX-License-Identifier: Apache-2.0
"""Compare testbed_bridge with a minimal script: python benchmark/testbed.py (see README.md)."""

import argparse
import sys
from functools import partial
from pathlib import Path
from statistics import median
from timeit import timeit

import testbed_endpoint
from rounds import make_parser, run, systems, take_turns
from system import Measurement
from table import BASELINE, BRIDGE, Metric, Samples
from testbed_c import COMPILER
from testbed_loads import Load, load_named
from testbed_system import LEAST_SHARE, Size, TestbedSystem

from drone_bridge.testbed.device.drone_state import DroneState
from drone_bridge.testbed.emulator.world import StereoCamera

#: Common sizes, pixels, with the aim for each load: CPU of the bridge relative to the baseline.
AIMS = {
    (320, 240): {Load.IMAGES: 1.5, Load.BESIDE_C: 2.1, Load.EVERYTHING: 1.35, Load.COMMANDED: 1.4},
    (640, 480): {Load.IMAGES: 1.1, Load.BESIDE_C: 1.45, Load.EVERYTHING: 1.15, Load.COMMANDED: 1.2},
    (1280, 720): {Load.IMAGES: 1.1, Load.BESIDE_C: 1.25, Load.EVERYTHING: 1.1, Load.COMMANDED: 1.15},
}
ENDPOINT_AIMS = {(320, 240): 1.4, (640, 480): 1.2}
ROUND_TRIP_AIMS = {(320, 240): 1.75, (640, 480): 1.1, (1280, 720): 1.1}
RATE_HZ = 30
LATENCY_P50 = Metric("latency, seven topics, p50 (ms)", 2, at_most=1.05)
LATENCY_P99 = Metric("latency, seven topics, p99 (ms)", 2, at_most=1.2, percentile=99)
ROUND_TRIP_CONTROLLED = Metric("round trip, controller (ms)", 2, at_most=1.1)

SMALL = (64, 48)  # pixels, for the memory test, in which only the number of frames matters
CHECKPOINTS = (1_000, 10_000, 50_000, 100_000)  # frames
FLAT_MEBIBYTES = 1.0  # maximum difference of the last checkpoints to the second one
MEBIBYTE = 1024 * 1024


def prepare(pair: list[TestbedSystem], size: Size) -> None:
    """Prepare both sides for measurements with cameras of this size."""
    for system in pair:
        system.open(size)
    for system in pair:
        system.warm_up()


def measure_paced(load: Load, sides: list[str], sizes: list[Size], seconds: float, samples: Samples) -> None:
    """Measure one round of a load at 30 Hz. Sizes at which the baseline loses images are skipped, with a message."""
    measured: dict[Size, dict[str, Measurement]] = {}
    with systems(partial(TestbedSystem, load=load), sides) as pair:
        for size in sizes:
            prepare(pair, size)
            measured[size] = take_turns(pair, partial(TestbedSystem.paced, rate_hz=RATE_HZ), seconds)
    by_side = {system.side: system for system in pair}
    for size, sides_measured in measured.items():
        share = by_side[BASELINE].share_received(sides_measured[BASELINE])
        if share < LEAST_SHARE:
            print(
                f"  skipped: {load.value}, {_name(size)}: the baseline lost {1 - share:.0%} of its images, which took "
                f"{_cpu_ms(sides_measured[BASELINE]):.2f} ms each: Fast DDS's asynchronous writer, or a busy machine."
            )
            continue
        for side, measurement in sides_measured.items():
            aim = ENDPOINT_AIMS.get(size) if load is Load.BESIDE_ENDPOINT else AIMS.get(size, {}).get(load)
            # An image is one of the two of a frame.
            cpu = Metric(f"CPU per image, {load.value} (ms)", 3, at_most=aim)
            samples.add(_name(size), cpu, side, _cpu_ms(measurement))
            if load is Load.EVERYTHING:
                latencies_s = by_side[side].received(measurement).latencies_s
                samples.add(_name(size), LATENCY_P50, side, 1000 * median(latencies_s))
                samples.add(_name(size), LATENCY_P99, side, *(1000 * latency_s for latency_s in latencies_s))
                answer = Metric("round trip, no controller (ms)", 2, at_most=ROUND_TRIP_AIMS.get(size))
                samples.add(_name(size), answer, side, measurement.round_trip_ms)


def measure_controlled(sides: list[str], sizes: list[Size], seconds: float, samples: Samples) -> None:
    """Measure one round in which a controller answers each frame before the next."""
    with systems(partial(TestbedSystem, load=Load.CONTROLLED), sides) as pair:
        for size in sizes:
            prepare(pair, size)
            for side, measurement in take_turns(pair, TestbedSystem.unpaced, seconds).items():
                samples.add(_name(size), ROUND_TRIP_CONTROLLED, side, measurement.round_trip_ms)


def measure_memory(checkpoints: tuple[int, ...]) -> None:
    """Print the bridge's resident memory after numbers of frames."""
    print(f"\nResident memory of the bridge, stereo {_name(SMALL)}, unpaced, one subscriber:")
    resident = []
    with systems(partial(TestbedSystem, load=Load.EVERYTHING), [BRIDGE]) as [system]:
        prepare([system], SMALL)
        measurement = system.begin()
        for checkpoint in checkpoints:
            system.frames(measurement, checkpoint - measurement.items)
            resident.append(system.subject.resident_bytes() / MEBIBYTE)
            print(f"  {checkpoint:>7} frames  {resident[-1]:.1f} MiB", flush=True)
    grown = max(resident[1:]) - resident[1]
    verdict = "met" if grown <= FLAT_MEBIBYTES else "MISSED"
    print(f"  growth after frame {checkpoints[1]}: {grown:.2f} MiB, aim <= {FLAT_MEBIBYTES:g} MiB, {verdict}")


def measure_ground(size: Size, frames: int = 1000) -> None:
    """Print the duration of rendering a frame of the emulator's two cameras, without and with its ground."""
    camera = StereoCamera(*size, 120.0, 90.0, 0.25)
    for ground in (None, -8.0):
        rendered_s = timeit(partial(camera.render, DroneState.at_start(), (), ground), number=frames)
        print(f"emulated frame, {_name(size)}, ground {ground}: {1000 * rendered_s / frames:.2f} ms", flush=True)


def main() -> int:
    """Run all measurements and print them."""
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", type=_size, nargs="+", default=[*AIMS], metavar="WIDTHxHEIGHT")
    parser.add_argument(
        "--loads", type=load_named, nargs="+", default=[*Load], metavar="LOAD", help=", ".join(Load.__members__)
    )
    parser.add_argument("--endpoint", type=Path, metavar="FOLDER", help="a clone of ROS-TCP-Endpoint's main-ros2")
    options = parser.parse_args()
    if Load.BESIDE_C in options.loads and not COMPILER:
        options.loads.remove(Load.BESIDE_C)
        print("skipped: the baseline in C, as gcc is not installed.")
    testbed_endpoint.FOLDER = options.endpoint
    if Load.BESIDE_ENDPOINT in options.loads and not options.endpoint:
        options.loads.remove(Load.BESIDE_ENDPOINT)
        print("skipped: ROS-TCP-Endpoint, as --endpoint is not given.")
    samples = Samples("stereo, 30 Hz, in flight")

    def measure_round(seconds: float, sides: list[str]) -> None:
        for load in options.loads:
            if load is Load.CONTROLLED:
                measure_controlled(sides, options.sizes, seconds, samples)
            else:
                measure_paced(load, sides, options.sizes, seconds, samples)

    divisor = 10 if options.quick else 1
    checkpoints = tuple(frames // divisor for frames in CHECKPOINTS)
    measure_ground(options.sizes[0])
    return run(options, samples, measure_round, partial(measure_memory, checkpoints))


def _cpu_ms(measurement: Measurement) -> float:
    return measurement.cpu_per_item_ms / 2


def _size(text: str) -> Size:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 640x480.")
    return int(width), int(height)


def _name(size: Size) -> str:
    return f"{size[0]} x {size[1]}"


if __name__ == "__main__":
    sys.exit(main())
