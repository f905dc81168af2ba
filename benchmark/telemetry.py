# SPDX-License-Identifier: Apache-2.0
"""Compare telemetry_bridge with a minimal script: python benchmark/telemetry.py (see README.md)."""

import os
import sys
import time
from functools import partial
from statistics import median, quantiles

from rounds import make_parser, run, systems, take_turns
from system import READY_TIMEOUT_S, Measurement, Place, System, bridge_command, script_command, ticks
from table import BRIDGE, Metric, Samples
from telemetry_peer import HEIGHT, WIDTH, Peer

RATE_HZ = 250.0
CPU = Metric("CPU per document (ms)", 2, at_most=1.15)
CPU_COMMANDED = Metric("CPU per document (ms)", 2, at_most=1.2)
LATENCY_P50 = Metric("latency of images, p50 (ms)", 2)
LATENCY_P99 = Metric("latency of images, p99 (ms)", 2)

LOAD = f"{WIDTH} x {HEIGHT}, {RATE_HZ:g} Hz"
COMMANDED = f"{LOAD}, commanded"
IMAGES = "camera/image_raw/compressed"
DECODED = "images_decoded"  # in the bridge's /diagnostics
DIAGNOSTICS_S = 1.3  # period within which they arrive again
WARM_UP_S = 0.3
WATCHED_S = 1.0


class TelemetrySystem(System):
    """One side of the comparison. `raw`: decoded images have a subscriber. `commanded`: cmd_vel has a publisher."""

    def __init__(
        self, side: str, place: Place, raw: bool = False, commanded: bool = False, **parameters: object
    ) -> None:
        self._peer = Peer()
        namespace = f"/benchmark_{os.getpid()}"
        words = [*(["--raw"] if raw else []), *(["--command"] if commanded else [])]
        subscriber = script_command("telemetry_subscriber.py", namespace, *words)
        make_command = partial(_bridge, parameters) if side == BRIDGE else partial(_baseline, commanded)
        super().__init__(side, place, make_command(self._peer.port, namespace), {"subscriber": subscriber})

    def warm_up(self) -> None:
        """Send documents until all topics have arrived, and some more."""
        with self.explained():
            for number in ticks(round(READY_TIMEOUT_S * RATE_HZ), RATE_HZ):
                self._peer.send(number)
                if self.helpers["subscriber"].has_spoken:
                    break
            else:
                raise TimeoutError(f"Not all topics reached the {self.side}'s subscriber within {READY_TIMEOUT_S:g} s.")
            for number in ticks(round(WARM_UP_S * RATE_HZ), RATE_HZ):
                self._peer.send(number)

    def measure(self, measurement: Measurement, seconds: float) -> None:
        """Send RATE_HZ documents per second."""
        with self.turn(measurement):
            for number in ticks(round(seconds * RATE_HZ), RATE_HZ):
                self._peer.send(number)
                measurement.items += 1

    def latencies_s(self, topic: str, measurement: Measurement) -> list[float]:
        """Return the age of each message of a topic in a measurement; known after `stop`."""
        return [age_s for sent_s, age_s in self.notes["ages"][topic] if measurement.contains(sent_s)]

    def close_peer(self) -> None:
        self._peer.close()


def measure_round(samples: Samples, seconds: float, sides: list[str]) -> None:
    """Measure one round."""
    measure_commanded(samples, seconds, sides)
    with systems(TelemetrySystem, sides) as pair:
        for system in pair:
            system.warm_up()
        measured = take_turns(pair, TelemetrySystem.measure, seconds)
    for system in pair:
        side, measurement = system.side, measured[system.side]
        latencies_s = system.latencies_s(IMAGES, measurement)
        samples.add(LOAD, CPU, side, measurement.cpu_per_item_ms)
        samples.add(LOAD, LATENCY_P50, side, 1000 * median(latencies_s))
        samples.add(LOAD, LATENCY_P99, side, 1000 * quantiles(latencies_s, n=100)[98])


def measure_commanded(samples: Samples, seconds: float, sides: list[str]) -> None:
    """Measure the CPU of both sides while a velocity is published at 20 Hz, and commands are sent at 25 Hz."""
    with systems(partial(TelemetrySystem, commanded=True), sides) as pair:
        for system in pair:
            system.warm_up()
        measured = take_turns(pair, TelemetrySystem.measure, seconds)
    for system in pair:
        samples.add(COMMANDED, CPU_COMMANDED, system.side, measured[system.side].cpu_per_item_ms)


def watch_decoding() -> None:
    """Print the number of images that the bridge decodes without and with a subscriber."""
    print("\nDecoded images, by the bridge's diagnostics:")
    for raw in (False, True):
        with systems(partial(TelemetrySystem, raw=raw), [BRIDGE]) as [system]:
            system.warm_up()
            system.measure(system.begin(), WATCHED_S)
            time.sleep(DIAGNOSTICS_S)
        published, decoded = len(system.notes["ages"][IMAGES]), int(system.notes["diagnostics"].get(DECODED, 0))
        is_as_it_should_be = decoded > 0 if raw else decoded == 0
        who, aim = ("somebody", "> 0") if raw else ("nobody", "0")
        verdict = "met" if is_as_it_should_be else "MISSED"
        print(f"  {who} subscribes to camera/image_raw: {decoded} of {published}, aim {aim}, {verdict}", flush=True)


def main() -> int:
    """Run all measurements and print them."""
    options = make_parser(__doc__).parse_args()
    samples = Samples("telemetry")
    return run(options, samples, partial(measure_round, samples), watch_decoding)


def _bridge(parameters: dict[str, object], port: int, namespace: str) -> list[str]:
    return bridge_command("telemetry_bridge", namespace, transport="udp", port=port, stamp_source="wire", **parameters)


def _baseline(commanded: bool, port: int, namespace: str) -> list[str]:
    return script_command("telemetry_baseline.py", str(port), namespace, *(["--commanded"] if commanded else []))


if __name__ == "__main__":
    sys.exit(main())
