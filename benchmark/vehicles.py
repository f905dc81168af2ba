# SPDX-License-Identifier: Apache-2.0
"""Comparison of a bridge with a minimal script, both with the same emulator at its usual rates."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rounds import make_parser, run, systems, take_turns
from system import (
    READY_TIMEOUT_S,
    Measurement,
    Place,
    System,
    free_port,
    node_executable,
    ros_arguments,
    script_command,
)
from table import BRIDGE, Metric, Samples

MESSAGES = Metric("messages per second", 1)
CPU_PER_MESSAGE = Metric("CPU per message (ms)", 3)

WARM_UP_S = 2.0  # after the first messages, because discovery is still in progress


@dataclass(frozen=True, slots=True)
class Vehicle:
    """Bridge of a vehicle, its emulator, and NAME_baseline.py, which takes a namespace and ports."""

    name: str
    #: Its ports, by the names of the bridge's parameters. The emulator's options have the same names.
    ports: tuple[str, ...]
    options: tuple[str, ...]  # additional options of the emulator
    topics: tuple[str, ...]  # topics of both sides, as package:type:topic
    loads: tuple[tuple[str, tuple[str, ...]], ...]  # name of each load, and the subscriber's options
    #: Script in this folder that runs the bridge or the emulator; by default those of the package.
    script: str = ""
    parameters: tuple[tuple[str, object], ...] = ()  # additional ones of the bridge
    cpu_at_most: float = 1.6  # aim: CPU of the bridge relative to that of the script

    def emulator_command(self, ports: dict[str, int]) -> list[str]:
        words = [f"--{name.replace('_', '-')}={port}" for name, port in ports.items()]
        program = [sys.executable, "-m", f"drone_bridge.{self.name}.emulator"]
        if self.script:
            program = script_command(self.script, "emulator")
        return [*program, *words, *self.options]

    def bridge_command(self, namespace: str, ports: dict[str, int]) -> list[str]:
        program = [node_executable(f"{self.name}_bridge")]
        if self.script:
            program = script_command(self.script, "bridge")
        return [*program, *ros_arguments(namespace, **ports, **dict(self.parameters))]


class VehicleSystem(System):
    """One side of the comparison."""

    def __init__(self, side: str, place: Place, vehicle: Vehicle, options: tuple[str, ...]) -> None:
        namespace = f"/benchmark_{os.getpid()}"
        ports = {name: free_port(is_stream=False) for name in vehicle.ports}
        helpers = {
            "emulator": vehicle.emulator_command(ports),
            "subscriber": script_command("vehicles_subscriber.py", namespace, *vehicle.topics, *options),
        }
        if side == BRIDGE:
            command = vehicle.bridge_command(namespace, ports)
        else:
            command = script_command(f"{vehicle.name}_baseline.py", namespace, *map(str, ports.values()))
        super().__init__(side, place, command, helpers)

    def warm_up(self) -> None:
        """Wait until all topics have arrived, and some more."""
        self.helpers["subscriber"].wait_for_line(0, READY_TIMEOUT_S)
        time.sleep(WARM_UP_S)

    def measure(self, measurement: Measurement, seconds: float) -> None:
        """Wait while the emulator runs. It continues afterwards, so there is no settling time."""
        with self.turn(measurement, settle_s=0.0):
            time.sleep(seconds)

    def count(self, measurement: Measurement) -> None:
        """Count the messages that arrived in a measurement; known after `stop`."""
        measurement.items = sum(measurement.contains(came_s) for came_s in self.notes["came_s"])


def measure_round(vehicle: Vehicle, samples: Samples, seconds: float, sides: list[str]) -> None:
    """Measure one round."""
    cpu = Metric("CPU, of one core (%)", 2, at_most=vehicle.cpu_at_most)
    for load, options in vehicle.loads:
        with systems(partial(VehicleSystem, vehicle=vehicle, options=options), sides) as pair:
            for system in pair:
                system.warm_up()
            measured = take_turns(pair, VehicleSystem.measure, seconds)
        for system in pair:
            measurement = measured[system.side]
            system.count(measurement)
            samples.add(load, cpu, system.side, measurement.cpu_percent)
            samples.add(load, MESSAGES, system.side, measurement.items_per_second)
            samples.add(load, CPU_PER_MESSAGE, system.side, measurement.cpu_per_item_ms)


def compare(
    description: str | None, vehicle: Vehicle, finish: Callable[[int, float], None] = lambda rounds, seconds: None
) -> int:
    """Run all measurements and print them; return the exit status.

    `finish` gets the number of rounds and their seconds, and measures more. It may raise ChildError.
    """
    options = make_parser(description, seconds=8.0).parse_args()
    samples = Samples(vehicle.name)
    measure = partial(measure_round, vehicle, samples)
    return run(options, samples, measure, lambda: finish(options.rounds, options.seconds))
