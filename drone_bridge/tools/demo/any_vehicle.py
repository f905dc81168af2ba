# SPDX-License-Identifier: Apache-2.0
"""Every legacy operator steers every vehicle, through standard topics: each pair flies a plan, and a table shows it.

Operator ↔ its server ↔ topics ↔ the bridge of another protocol ↔ vehicle. Both halves are launch files that share
nothing but the namespace.
"""

import json
import math
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rclpy
from rclpy.client import Client
from std_srvs.srv import Trigger

from drone_bridge.kind import ProtocolKind, kinds, load
from drone_bridge.programs.demonstration import NEEDS, Demonstration
from drone_bridge.programs.plan import parse_plan
from drone_bridge.tools.demo import way
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.way import Displacement

#: The first rest lets topics be discovered, the others let a slow vehicle stop.
PLAN = parse_plan("5s, 5s forward 0.4, 2s, 3s turn 0.5, 2s")
NAMESPACE = "any"
START_TIMEOUT_S = 60.0
#: Includes starting, taking off and landing.
LONGEST_RUN_S = PLAN.duration_s + 60.0
#: How close to the end of the plan a vehicle that follows velocities has to end.
NEAR_M = 0.15
NEAR_RAD = math.radians(3)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where one pair ended, or why it was not tried or did not work."""

    operator: str
    vehicle: str
    is_good: bool
    remark: str = ""
    displacement: Displacement | None = None


def show(operators: Sequence[str] | None, vehicles: Sequence[str] | None, folder: Path) -> int:
    """Run all pairs of those named, print the table, and return 0 if each that makes sense worked. None is all."""
    isolate_ros_graph()
    shown = {name: kind for name, kind in kinds().items() if kind.demonstration}
    by_emulator = {kind.emulator.name: kind for kind in shown.values()}
    pairs = [(shown[o], by_emulator[v]) for o in _chosen(shown, operators) for v in _chosen(by_emulator, vehicles)]
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with Progress() as progress:
        for done, (operator, vehicle) in enumerate(pairs):
            name = vehicle.emulator.name
            progress.show(f"{done} of {len(pairs)}: a {operator.name} operator steers the {name}'s vehicle")
            outcomes.append(_run(operator, vehicle, folder))
    planned = way.displacement_of_plan(PLAN)
    print(f"\ncommanded: {PLAN}; that is {planned}\n")
    print(f"{'operator':10} {'vehicle':10} what the vehicle did")
    for outcome in outcomes:
        result = outcome.remark
        if outcome.displacement:
            distance_m, angle_rad = outcome.displacement.error_to(planned)
            result = f"{outcome.displacement}; missed by {distance_m:.2f} m, {math.degrees(angle_rad):.0f}°"
        print(f"{outcome.operator:10} {outcome.vehicle:10} {result}")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def _chosen(known: Collection[str], names: Sequence[str] | None) -> list[str]:
    if unknown := set(names or ()) - set(known):
        raise SystemExit(f"Unknown: {', '.join(sorted(unknown))}. Available: {', '.join(known)}.")
    return [each for each in known if names is None or each in names]


def obstacle(operator: Demonstration, vehicle: Demonstration) -> str:
    """Return why a pair makes no sense; empty when it does."""
    return "" if operator.needs in {"", *vehicle.reports} else NEEDS[operator.needs]


def _run(operator: ProtocolKind, vehicle: ProtocolKind, folder: Path) -> Outcome:
    steering, steered = load(operator.demonstration), load(vehicle.demonstration)
    pair = operator.name, vehicle.emulator.name
    if why_not := obstacle(steering, steered):
        return Outcome(*pair, is_good=True, remark=why_not)
    with tempfile.TemporaryDirectory() as scratch:
        trajectory = Path(scratch) / "trajectory.csv"
        log = folder / "_".join(pair)
        arguments = {"emulate": True, f"{vehicle.emulator.name}_trajectory": trajectory, **steered.arguments}
        driven = _compose(vehicle.launch_file, log.with_suffix(".vehicle.log"), steered.parameters, scratch, arguments)
        try:
            if not driven.wait_for(r"_bridge\]: ", START_TIMEOUT_S):
                return Outcome(*pair, is_good=False, remark="its bridge did not start")
            if steered.takeoff and not steering.takeoff:
                _call(f"/{NAMESPACE}/{steered.takeoff}")
            arguments = {"operate": True, "operator_plan": PLAN, **steering.serving(steered.reports)}
            launch_file, log = f"{operator.name}_server.launch.xml", log.with_suffix(".operator.log")
            serving = _compose(launch_file, log, steering.server_parameters, scratch, arguments)
            try:
                if not serving.wait_for(r"\[launch\] (?!\w+_server)\S+ (ended|exited|died)", LONGEST_RUN_S):
                    return Outcome(*pair, is_good=False, remark="the operator did not finish its plan")
            finally:
                serving.stop()
        finally:
            driven.stop()
        displacement = way.displacement_along([steered.pose(row) for row in way.read_rows(trajectory)])
    distance_m, angle_rad = displacement.error_to(way.displacement_of_plan(PLAN))
    return Outcome(*pair, distance_m <= NEAR_M and angle_rad <= NEAR_RAD, displacement=displacement)


def _compose(
    launch_file: str, log: Path, parameters: Mapping[str, float | str], scratch: str, arguments: Mapping[str, object]
) -> Composition:
    """Start a launch file on free ports; its nodes that have these parameters take them."""
    given: dict[str, object] = {port: free_port() for port in ports_of(launch_file)}
    if parameters:
        given["params_file"] = file = Path(scratch) / f"{launch_file}.yaml"
        file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
    return Composition(launch_file, log, namespace=NAMESPACE, **given, **arguments)


def _call(service: str) -> None:
    """Call a std_srvs/Trigger, and wait for its answer. Raises RuntimeError."""
    rclpy.init()
    try:
        node = rclpy.create_node("demo")
        client: Client[Any, Any] = node.create_client(Trigger, service)
        if not client.wait_for_service(START_TIMEOUT_S):
            raise RuntimeError(f"There is no service {service}.")
        called = client.call_async(Trigger.Request())
        rclpy.spin_until_future_complete(node, called, timeout_sec=START_TIMEOUT_S)
        answer = called.result()
        if answer is None or not answer.success:
            raise RuntimeError(f"{service}: {answer.message if answer else 'no answer'}")
    finally:
        rclpy.shutdown()
