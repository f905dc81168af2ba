# SPDX-License-Identifier: Apache-2.0
"""Compare simulator_bridge with a minimal script: python benchmark/simulator.py (see README.md)."""

import json
import math
import os
import sys
import time
from functools import partial
from statistics import median, quantiles

from rounds import make_parser, run, systems, take_turns
from simulator_peer import ENTITIES, RATE_HZ, Peer
from simulator_topics import OTHERS
from system import READY_TIMEOUT_S, Measurement, Place, System, bridge_command, script_command, ticks
from table import BRIDGE, Metric, Samples

MESSAGES_PER_SECOND = Metric("stream messages/s, unpaced", 0)
CPU_PERCENT = Metric("CPU at 100 Hz, of one core (%)", 1, at_most=1.25)
LATENCY_P50 = Metric("latency at 100 Hz, p50 (ms)", 2)
LATENCY_P99 = Metric("latency at 100 Hz, p99 (ms)", 2)
CALLS_PER_SECOND = Metric("service calls/s, no streams", 0, at_least=0.9)

LOAD = f"{ENTITIES} entities, 5 attributes"
ON_THE_WIRE = "request_round_trip_ms"  # in the bridge's /diagnostics
BURST = 100  # steps, of which the last must arrive before the next burst begins
BURST_TIMEOUT_S = 20.0
WARM_UP_S = 0.3
CALLS_TIMEOUT_S = 20.0


class SimulatorSystem(System):
    """One side of the comparison."""

    def __init__(self, side: str, place: Place, **parameters: object) -> None:
        self._peer = Peer()
        self._reported = 0  # steps
        namespace = f"/benchmark_{os.getpid()}"
        make_command = partial(_bridge, parameters) if side == BRIDGE else _baseline
        helpers = {
            "subscriber": script_command("simulator_subscriber.py", namespace),
            "caller": script_command("simulator_caller.py", namespace),
        }
        super().__init__(side, place, make_command(self._peer.port, namespace), helpers)

    def warm_up(self) -> None:
        """Send steps until all topics have arrived, and some more; call the service until it responds."""
        with self.explained():
            for _ in ticks(round(READY_TIMEOUT_S * RATE_HZ), RATE_HZ):
                self._peer.step()
                if self._peer.streams == ENTITIES and self.helpers["subscriber"].has_spoken:
                    break
            else:
                raise TimeoutError(
                    f"Not all topics came to the {self.side}'s subscriber in {READY_TIMEOUT_S:g} s; "
                    f"{self._peer.streams} streams had been asked for."
                )
            for _ in ticks(round(WARM_UP_S * RATE_HZ), RATE_HZ):
                self._peer.step()
            self._call(WARM_UP_S)

    def unpaced(self, measurement: Measurement, seconds: float) -> None:
        """Send steps as fast as they are read, until the last one has arrived."""
        subscriber = self.helpers["subscriber"]
        with self.turn(measurement):
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                for number in range(BURST):
                    self._peer.step(is_reported=number == BURST - 1)
                self._reported += 1
                subscriber.wait_for_line(self._reported, BURST_TIMEOUT_S)  # after `ready`
                measurement.items += BURST * ENTITIES

    def paced(self, measurement: Measurement, seconds: float) -> None:
        """Send RATE_HZ steps per second."""
        with self.turn(measurement):
            for _ in ticks(round(seconds * RATE_HZ), RATE_HZ):
                self._peer.step()
                measurement.items += ENTITIES

    def call(self, measurement: Measurement, seconds: float) -> None:
        """Call a service repeatedly, without pauses, while nothing is streamed."""
        with self.turn(measurement):
            measurement.round_trips_s += self._call(seconds)
        measurement.items = len(measurement.round_trips_s)

    def ages_s(self, measurement: Measurement) -> list[float]:
        """Return the age of each state of a measurement; known after `stop`."""
        return [age_s for sent_s, age_s in self.notes["ages"] if measurement.contains(sent_s)]

    def close_peer(self) -> None:
        self._peer.close()

    def _call(self, seconds: float) -> list[float]:
        """Call for this time; return the duration of each call, s."""
        caller = self.helpers["caller"]
        question = caller.ask(str(seconds))
        answer: list[float] = json.loads(caller.wait_for_line(question, seconds + CALLS_TIMEOUT_S))
        return answer


def measure_round(samples: Samples, on_the_wire_ms: list[float], seconds: float, sides: list[str]) -> None:
    """Measure one round."""
    with systems(SimulatorSystem, sides) as pair:
        for system in pair:
            system.warm_up()
        unpaced = take_turns(pair, SimulatorSystem.unpaced, seconds)
        paced = take_turns(pair, SimulatorSystem.paced, seconds)
        called = take_turns(pair, SimulatorSystem.call, seconds)
    for system in pair:
        side = system.side
        samples.add(LOAD, MESSAGES_PER_SECOND, side, unpaced[side].items_per_second)
        ages_s = system.ages_s(paced[side])
        samples.add(LOAD, CPU_PERCENT, side, paced[side].cpu_percent)
        samples.add(LOAD, LATENCY_P50, side, 1000 * median(ages_s))
        samples.add(LOAD, LATENCY_P99, side, 1000 * quantiles(ages_s, n=100)[98])
        samples.add(LOAD, CALLS_PER_SECOND, side, called[side].items_per_second)
        if side == BRIDGE:
            on_the_wire_ms.append(float(system.notes["diagnostics"].get(ON_THE_WIRE, math.nan)))


def main() -> int:
    """Run all measurements and print them."""
    options = make_parser(__doc__, seconds=1.5).parse_args()
    samples = Samples("simulator")
    on_the_wire_ms: list[float] = []

    def tell_round_trip() -> None:
        print(
            "\nFrom sending a request to reading its response, by the bridge's own diagnostics: "
            f"{median(on_the_wire_ms):.2f} ms ({min(on_the_wire_ms):.2f}..{max(on_the_wire_ms):.2f})"
        )

    return run(options, samples, partial(measure_round, samples, on_the_wire_ms), tell_round_trip)


def _bridge(parameters: dict[str, object], port: int, namespace: str) -> list[str]:
    entities = "[" + ",".join(f"'{entity}'" for entity in OTHERS) + "]"
    # Nothing is steered here, so the vehicle's principal axes are not needed.
    given = {"publish_clock": True, "body_to_model": "[1.0, 0.0, 0.0, 0.0]"}
    return bridge_command("simulator_bridge", namespace, port=port, entities=entities, **given, **parameters)


def _baseline(port: int, namespace: str) -> list[str]:
    return script_command("simulator_baseline.py", str(port), namespace)


if __name__ == "__main__":
    sys.exit(main())
