# SPDX-License-Identifier: Apache-2.0
"""Every legacy operator steers every vehicle, through standard topics: each pair flies a plan, and a table shows it.

Operator ↔ its server ↔ topics ↔ the bridge of another protocol ↔ vehicle. Both halves are launch files that share
nothing but the namespace.
"""

import json
import math
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rclpy
from rclpy.client import Client
from std_srvs.srv import Trigger

from drone_bridge.kind import kinds
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
NEAR_M = 0.3
NEAR_RAD = math.radians(10)


#: What some operators require, and what the table says of vehicles without it.
NEEDS = {
    "gyroscope": "telemetry carries body rates, and this vehicle reports none",
    "odom": "the simulator's clients need a position, and this vehicle reports none",
}
#: An AR.Drone at full stick, as its programs assume: m/s and rad/s.
AR_DRONE = {"full_scale.roll": 5.0, "full_scale.pitch": 5.0, "full_scale.yaw": 1.745, "full_scale.gas": 0.7}
#: The drone above the rover at full pitch or roll, against its drag, m/s, and at full yaw, rad/s.
LANDING_DRONE = {"full_scale.pitch": 12.5, "full_scale.roll": 12.5, "full_scale.yaw": 0.5}
TILTS = "commanded by tilt, it does not hold a speed"


@dataclass(frozen=True, slots=True)
class Vehicle:
    """What is special about an emulated one."""

    arguments: dict[str, object] = field(default_factory=dict)
    parameters: dict[str, float] = field(default_factory=dict)  # of its bridge
    has: frozenset[str] = frozenset({"odom"})  # of NEEDS, and cameras for a testbed
    takeoff: str = ""
    """The service that makes it take off before it is steered, if it needs one"""
    remark: str = ""
    """Why it can't be expected to end where the plan does"""


#: By the name of the emulator, which is that of its launch file.
VEHICLES = {kind.emulator.name: Vehicle() for kind in kinds().values()} | {
    "testbed": Vehicle({"attitude_layout": "pose"}, has=frozenset({"cameras", "odom"})),
    "dronegui": Vehicle(parameters=AR_DRONE, takeoff="dronegui_bridge/takeoff", remark=TILTS),
    "simulator": Vehicle(has=frozenset({"gyroscope", "odom"})),
    "landing": Vehicle({"gusts": 0.0}, LANDING_DRONE, frozenset({"gyroscope"}), remark=TILTS),
}
OPERATORS = tuple(kinds())
REQUIRED = {"simulator": "odom", "telemetry": "gyroscope"}  # by operators, of NEEDS


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where one pair ended, or why it was not tried or did not work."""

    operator: str
    vehicle: str
    displacement: Displacement | None = None
    why_not: str = ""


def obstacle(operator: str, vehicle: str) -> str:
    """Return why a pair makes no sense; empty when it does."""
    needed = REQUIRED.get(operator, "")
    return "" if needed in {"", *VEHICLES[vehicle].has} else NEEDS[needed]


def show(operators: Sequence[str] | None, vehicles: Sequence[str] | None, folder: Path) -> int:
    """Run all pairs of those named, print the table, and return 0 if each that makes sense worked. None is all."""
    isolate_ros_graph()
    pairs = [(o, v) for o in _chosen(OPERATORS, operators) for v in _chosen(VEHICLES, vehicles)]
    outcomes = []
    folder.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        for done, (operator, vehicle) in enumerate(pairs):
            progress.show(f"{done} of {len(pairs)}: a {operator} operator steers the {vehicle}'s vehicle")
            outcomes.append(_run(operator, vehicle, folder))
    _print(outcomes)
    return 0 if all(_succeeded(outcome) for outcome in outcomes) else 1


def _chosen(known: Collection[str], names: Sequence[str] | None) -> list[str]:
    if unknown := set(names or ()) - set(known):
        raise SystemExit(f"Unknown: {', '.join(sorted(unknown))}. Available: {', '.join(known)}.")
    return [each for each in known if names is None or each in names]


def _run(operator: str, vehicle: str, folder: Path) -> Outcome:
    if why_not := obstacle(operator, vehicle):
        return Outcome(operator, vehicle, why_not=why_not)
    special = VEHICLES[vehicle]
    with tempfile.TemporaryDirectory() as scratch:
        trajectory = Path(scratch) / "trajectory.csv"
        log = folder / f"{operator}_{vehicle}"
        driven = _compose(
            f"{vehicle}.launch.xml",
            log.with_suffix(".vehicle.log"),
            special.parameters,
            Path(scratch) / "vehicle.yaml",
            emulate=True,
            **{f"{vehicle}_trajectory": trajectory},
            **special.arguments,
        )
        try:
            if not driven.wait_for(r"_bridge\]: ", START_TIMEOUT_S):
                return Outcome(operator, vehicle, why_not="its bridge did not start")
            if special.takeoff and operator != "dronegui":
                _call(f"/{NAMESPACE}/{special.takeoff}")
            why_not = _operate(operator, special, log.with_suffix(".operator.log"), Path(scratch))
        finally:
            driven.stop()
        if why_not:
            return Outcome(operator, vehicle, why_not=why_not)
        poses = [way.POSE_OF[vehicle](row) for row in way.read_rows(trajectory)]
        return Outcome(operator, vehicle, displacement=way.displacement_along(poses))


def _compose(
    launch_file: str, log: Path, parameters: dict[str, float], params_file: Path, **arguments: object
) -> Composition:
    """Start a launch file on free ports; its nodes that have these parameters take them."""
    if parameters:
        params_file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
        arguments["params_file"] = params_file
    ports = {port: free_port() for port in ports_of(launch_file)}
    return Composition(launch_file, log, namespace=NAMESPACE, **ports, **arguments)


def _operate(operator: str, vehicle: Vehicle, log: Path, scratch: Path) -> str:
    """Have the operator follow the plan; return what went wrong, if anything."""
    arguments: dict[str, object] = {}
    if operator == "testbed":  # what the vehicle can report to an autopilot
        arguments["attitude_layout"] = "pose" if "odom" in vehicle.has else "pitch_roll"
        arguments["testbed_cameras"] = "stereo" if "cameras" in vehicle.has else "none"
    serving = _compose(
        f"{operator}_server.launch.xml",
        log,
        AR_DRONE if operator == "dronegui" else {},
        scratch / "operator.yaml",
        operate=True,
        operator_plan=PLAN,
        **arguments,
    )
    try:
        if not serving.wait_for(r"\[launch\] (?!\w+_server)\S+ (ended|exited|died)", LONGEST_RUN_S):
            return "the operator did not finish its plan"
        return ""
    finally:
        serving.stop()


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


def _succeeded(outcome: Outcome) -> bool:
    if obstacle(outcome.operator, outcome.vehicle):
        return True
    if outcome.displacement is None:
        return False
    distance_m, angle_rad = outcome.displacement.error_to(way.displacement_of_plan(PLAN))
    return bool(VEHICLES[outcome.vehicle].remark) or (distance_m <= NEAR_M and angle_rad <= NEAR_RAD)


def _print(outcomes: Sequence[Outcome]) -> None:
    planned = way.displacement_of_plan(PLAN)
    print(f"\ncommanded: {PLAN}; that is {planned}\n")
    print(f"{'operator':10} {'vehicle':10} what the vehicle did")
    for outcome in outcomes:
        result = outcome.why_not
        if outcome.displacement:
            distance_m, angle_rad = outcome.displacement.error_to(planned)
            result = f"{outcome.displacement}; missed by {distance_m:.2f} m, {math.degrees(angle_rad):.0f}°"
            if VEHICLES[outcome.vehicle].remark:
                result += f" ({VEHICLES[outcome.vehicle].remark})"
        print(f"{outcome.operator:10} {outcome.vehicle:10} {result}")
