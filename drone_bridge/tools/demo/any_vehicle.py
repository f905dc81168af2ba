# SPDX-License-Identifier: Apache-2.0
"""Every legacy operator steers every vehicle, through standard topics: each pair flies a plan, and a table shows it.

Operator ↔ its server ↔ topics ↔ the bridge of another protocol ↔ vehicle. Both halves are launch files that share
nothing but the namespace.
"""

import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import rclpy
from rclpy.client import Client
from std_srvs.srv import Trigger

from drone_bridge.operators.plan import parse_plan
from drone_bridge.tools.demo import displacement
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.displacement import Displacement, Pose, Row
from drone_bridge.tools.demo.progress import Progress

#: The first rest lets topics be discovered, the others let a slow vehicle stop.
PLAN: Final = parse_plan("5s, 5s forward 0.4, 2s, 3s turn 0.5, 2s")
NAMESPACE: Final = "any"
START_TIMEOUT_S: Final = 60.0
#: Includes starting, taking off and landing.
LONGEST_RUN_S: Final = PLAN.duration_s + 60.0
#: How close to the end of the plan a vehicle that follows velocities has to end.
NEAR_M: Final = 0.3
NEAR_RAD: Final = math.radians(10)


#: What some operators require, and what the table says of vehicles without it.
NEEDS: Final = {
    "gyroscope": "telemetry carries body rates, and this vehicle reports none",
    "odom": "the simulator's clients need a position, and this vehicle reports none",
}
#: Parameters by node of a launch file.
Parameters = dict[str, dict[str, float]]
#: An AR.Drone at full stick, as its programs assume: m/s and rad/s.
AR_DRONE: Final = {"full_scale.roll": 5.0, "full_scale.pitch": 5.0, "full_scale.yaw": 1.745, "full_scale.gas": 0.7}
#: The drone above the rover at full pitch or roll, against its drag, m/s, and at full yaw, rad/s.
LANDING_DRONE: Final = {"full_scale.pitch": 12.5, "full_scale.roll": 12.5, "full_scale.yaw": 0.5}
TILTS: Final = "commanded by tilt, it does not hold a speed"


@dataclass(frozen=True, slots=True)
class Vehicle:
    """A launch file that emulates one, and how to read its trajectory."""

    name: str
    launch_file: str
    pose_of: Callable[[Row], Pose]
    ports: tuple[str, ...]
    arguments: dict[str, object] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    has: frozenset[str] = frozenset()  # of NEEDS, and cameras for a testbed
    #: The service that makes it take off before it is steered, if it needs one.
    takeoff: str = ""
    #: Why it can't be expected to end where the plan does.
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Operator:
    """A launch file that serves one, and starts it."""

    name: str
    launch_file: str
    ports: tuple[str, ...]
    arguments_for: Callable[[Vehicle], dict[str, object]] = lambda _: {}
    parameters: Parameters = field(default_factory=dict)
    needs: str = ""  # of NEEDS


def _autopilot_for(vehicle: Vehicle) -> dict[str, object]:
    """Return the launch arguments that say what a vehicle can report to an autopilot."""
    return {
        "attitude_layout": "pose" if "odom" in vehicle.has else "pitch_roll",
        "testbed_cameras": "stereo" if "cameras" in vehicle.has else "none",
    }


Named = TypeVar("Named", Vehicle, Operator)

VEHICLES: Final = (
    Vehicle(
        "testbed",
        "testbed.launch.xml",
        displacement.pose_from_testbed,
        ports=("testbed_port",),
        arguments={"attitude_layout": "pose"},
        has=frozenset({"cameras", "odom"}),
    ),
    Vehicle(
        "dronegui",
        "dronegui.launch.xml",
        displacement.pose_from_drone,
        ports=("dronegui_port", "navdata_port"),
        parameters={"dronegui_bridge": AR_DRONE},
        has=frozenset({"odom"}),
        takeoff="dronegui_bridge/takeoff",
        remark=TILTS,
    ),
    Vehicle(
        "simulator",
        "simulator.launch.xml",
        displacement.pose_from_simulator,
        ports=("simulator_port",),
        has=frozenset({"gyroscope", "odom"}),
    ),
    Vehicle(
        "robot",
        "robot.launch.xml",
        displacement.pose_from_robot,
        ports=("robot_port", "discovery_port"),
        has=frozenset({"odom"}),
    ),
    Vehicle(
        "landing",
        "landing.launch.xml",
        displacement.pose_from_drone,
        ports=("telemetry_port",),
        arguments={"gusts": 0.0},
        parameters={"telemetry_bridge": LANDING_DRONE},
        has=frozenset({"gyroscope"}),
        remark=TILTS,
    ),
)
OPERATORS: Final = (
    Operator("testbed", "testbed_server.launch.xml", ports=("testbed_server_port",), arguments_for=_autopilot_for),
    Operator(
        "dronegui",
        "dronegui_server.launch.xml",
        ports=("dronegui_server_port", "navdata_port"),
        parameters={"dronegui_server": AR_DRONE},
    ),
    Operator("simulator", "simulator_server.launch.xml", ports=("simulator_server_port",), needs="odom"),
    Operator("robot", "robot_server.launch.xml", ports=("robot_server_port", "discovery_port")),
    Operator("telemetry", "telemetry_server.launch.xml", ports=("operator_port",), needs="gyroscope"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where one pair ended, or why it was not tried or did not work."""

    operator: Operator
    vehicle: Vehicle
    displacement: Displacement | None = None
    why_not: str = ""


def obstacle(operator: Operator, vehicle: Vehicle) -> str:
    """Return why a pair makes no sense; empty when it does."""
    return "" if operator.needs in {"", *vehicle.has} else NEEDS[operator.needs]


def show(operators: Sequence[str] | None, vehicles: Sequence[str] | None, folder: Path) -> int:
    """Run all pairs of those named, print the table, and return 0 if each that makes sense worked. None is all."""
    isolate_ros_graph()
    pairs = [(o, v) for o in _chosen(OPERATORS, operators) for v in _chosen(VEHICLES, vehicles)]
    outcomes = []
    folder.mkdir(parents=True, exist_ok=True)
    with Progress(total=len(pairs)) as progress:
        for done, (operator, vehicle) in enumerate(pairs):
            progress.show(f"a {operator.name} operator steers the {vehicle.name}'s vehicle", done)
            outcomes.append(_run(operator, vehicle, folder))
    _print(outcomes)
    return 0 if all(_succeeded(outcome) for outcome in outcomes) else 1


def _chosen(known: Sequence[Named], names: Sequence[str] | None) -> list[Named]:
    if unknown := set(names or ()) - {each.name for each in known}:
        raise SystemExit(f"Unknown: {', '.join(sorted(unknown))}. Available: {', '.join(each.name for each in known)}.")
    return [each for each in known if names is None or each.name in names]


def _run(operator: Operator, vehicle: Vehicle, folder: Path) -> Outcome:
    if why_not := obstacle(operator, vehicle):
        return Outcome(operator, vehicle, why_not=why_not)
    with tempfile.TemporaryDirectory() as scratch:
        trajectory = Path(scratch) / "trajectory.csv"
        log = folder / f"{operator.name}_{vehicle.name}"
        driven = Composition(
            vehicle.launch_file,
            log.with_suffix(".vehicle.log"),
            emulate=True,
            namespace=NAMESPACE,
            **{f"{vehicle.name}_trajectory": trajectory},
            **{port: free_port() for port in vehicle.ports},
            **_params_file(vehicle.parameters, Path(scratch) / "vehicle.yaml"),
            **vehicle.arguments,
        )
        try:
            if not driven.wait_for(r"_bridge\]: ", START_TIMEOUT_S):
                return Outcome(operator, vehicle, why_not="its bridge did not start")
            if vehicle.takeoff and operator.name != "dronegui":
                _call(f"/{NAMESPACE}/{vehicle.takeoff}")
            why_not = _operate(operator, vehicle, log.with_suffix(".operator.log"), Path(scratch))
        finally:
            driven.stop()
        if why_not:
            return Outcome(operator, vehicle, why_not=why_not)
        return Outcome(operator, vehicle, displacement=displacement.of_file(trajectory, vehicle.pose_of))


def _params_file(parameters: Parameters, path: Path) -> dict[str, object]:
    """Write a file of parameters; return the argument of launch files for it, if there are any."""
    if not parameters:
        return {}
    path.write_text(json.dumps({f"/**/{node}": {"ros__parameters": values} for node, values in parameters.items()}))
    return {"params_file": path}


def _operate(operator: Operator, vehicle: Vehicle, log: Path, scratch: Path) -> str:
    """Have the operator follow the plan; return what went wrong, if anything."""
    serving = Composition(
        operator.launch_file,
        log,
        operate=True,
        namespace=NAMESPACE,
        operator_plan=PLAN,
        **{port: free_port() for port in operator.ports},
        **_params_file(operator.parameters, scratch / "operator.yaml"),
        **operator.arguments_for(vehicle),
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
    distance_m, angle_rad = outcome.displacement.error_to(displacement.of_plan(PLAN))
    return bool(outcome.vehicle.remark) or (distance_m <= NEAR_M and angle_rad <= NEAR_RAD)


def _print(outcomes: Sequence[Outcome]) -> None:
    planned = displacement.of_plan(PLAN)
    print(f"\ncommanded: {PLAN}; that is {planned}\n")
    print(f"{'operator':10} {'vehicle':10} what the vehicle did")
    for outcome in outcomes:
        result = outcome.why_not
        if outcome.displacement:
            distance_m, angle_rad = outcome.displacement.error_to(planned)
            result = f"{outcome.displacement}; missed by {distance_m:.2f} m, {math.degrees(angle_rad):.0f}°"
            if outcome.vehicle.remark:
                result += f" ({outcome.vehicle.remark})"
        print(f"{outcome.operator.name:10} {outcome.vehicle.name:10} {result}")
