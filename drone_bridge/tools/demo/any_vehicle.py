# SPDX-License-Identifier: Apache-2.0
"""Any of the legacy operators steers any of the vehicles: a plan by each, through standard topics, and what came of it.

Operator ↔ its server ↔ topics ↔ the bridge of another protocol ↔ vehicle. Both halves are launch files that know
nothing of each other but the namespace.
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
from drone_bridge.tools.demo import ways
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.ways import Place, Row, Way

#: The rest at first is for topics to be joined, the others for what is slow to stop.
PLAN: Final = parse_plan("5s, 5s forward 0.4, 2s, 3s turn 0.5, 2s")
NAMESPACE: Final = "any"
START_TIMEOUT_S: Final = 60.0
#: Beside the plan: for starting, taking off and landing.
LONGEST_RUN_S: Final = PLAN.duration_s + 60.0
#: Within which a vehicle that follows velocities comes where the plan ends.
NEAR_M: Final = 0.3
NEAR_RAD: Final = math.radians(10)


#: What some operators can't do without, and what is to be said of vehicles that have none.
NEEDS: Final = {
    "gyroscope": "telemetry has the body's rates in it, and nothing tells those of this vehicle",
    "odom": "the simulator's clients steer what has a place, and nothing tells where this vehicle is",
}
#: Of the nodes in a launch file, by the node.
Parameters = dict[str, dict[str, float]]
#: What an AR.Drone does at most, as its programs take it to: m/s and rad/s in cmd_vel instead of shares.
AR_DRONE: Final = {"full_scale.roll": 5.0, "full_scale.pitch": 5.0, "full_scale.yaw": 1.745, "full_scale.gas": 0.7}
#: What all of pitch or roll comes to against the drag of the drone above the rover, m/s, and all of its yaw, rad/s.
LANDING_DRONE: Final = {"full_scale.pitch": 12.5, "full_scale.roll": 12.5, "full_scale.yaw": 0.5}
TILTS: Final = "it is told how to tilt, and holds no speed"


@dataclass(frozen=True, slots=True)
class Vehicle:
    """A launch file that emulates one, and how to read where it went."""

    name: str
    launch_file: str
    place_of: Callable[[Row], Place]
    ports: tuple[str, ...]
    arguments: dict[str, object] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    has: frozenset[str] = frozenset()  # of NEEDS, and cameras for a testbed
    #: What makes it fly before anybody steers it, if it needs to be asked.
    takeoff: str = ""
    #: Why it does not end where a plan does, where it can't.
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
    """Return what an autopilot can be told of a vehicle."""
    return {
        "attitude_layout": "pose" if "odom" in vehicle.has else "pitch_roll",
        "testbed_cameras": "stereo" if "cameras" in vehicle.has else "none",
    }


Named = TypeVar("Named", Vehicle, Operator)

VEHICLES: Final = (
    Vehicle(
        "testbed",
        "testbed.launch.xml",
        ways.place_of_testbed,
        ports=("testbed_port",),
        arguments={"attitude_layout": "pose"},
        has=frozenset({"cameras", "odom"}),
    ),
    Vehicle(
        "dronegui",
        "dronegui.launch.xml",
        ways.place_of_drone,
        ports=("dronegui_port", "navdata_port"),
        parameters={"dronegui_bridge": AR_DRONE},
        has=frozenset({"odom"}),
        takeoff="dronegui_bridge/takeoff",
        remark=TILTS,
    ),
    Vehicle(
        "simulator",
        "simulator.launch.xml",
        ways.place_of_simulator,
        ports=("simulator_port",),
        has=frozenset({"gyroscope", "odom"}),
    ),
    Vehicle(
        "robot",
        "robot.launch.xml",
        ways.place_of_robot,
        ports=("robot_port", "discovery_port"),
        has=frozenset({"odom"}),
    ),
    Vehicle(
        "landing",
        "landing.launch.xml",
        ways.place_of_drone,
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
    """What one pair did, or why it was not tried or did not work."""

    operator: Operator
    vehicle: Vehicle
    way: Way | None = None
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
    return 0 if all(_is_well(outcome) for outcome in outcomes) else 1


def _chosen(those: Sequence[Named], names: Sequence[str] | None) -> list[Named]:
    if unknown := set(names or ()) - {each.name for each in those}:
        raise SystemExit(f"There is no {', '.join(sorted(unknown))}, but {', '.join(each.name for each in those)}.")
    return [each for each in those if names is None or each.name in names]


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
        return Outcome(operator, vehicle, way=ways.way_of_file(trajectory, vehicle.place_of))


def _params_file(parameters: Parameters, path: Path) -> dict[str, object]:
    """Write a file of parameters; return the argument of launch files for it, if there are any."""
    if not parameters:
        return {}
    path.write_text(json.dumps({f"/**/{node}": {"ros__parameters": values} for node, values in parameters.items()}))
    return {"params_file": path}


def _operate(operator: Operator, vehicle: Vehicle, log: Path, scratch: Path) -> str:
    """Have the operator follow the plan; return what was wrong, if anything."""
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
            return "the operator did not come to the end of its plan"
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


def _is_well(outcome: Outcome) -> bool:
    if obstacle(outcome.operator, outcome.vehicle):
        return True
    if outcome.way is None:
        return False
    distance_m, angle_rad = outcome.way.missed(ways.way_of_plan(PLAN))
    return bool(outcome.vehicle.remark) or (distance_m <= NEAR_M and angle_rad <= NEAR_RAD)


def _print(outcomes: Sequence[Outcome]) -> None:
    planned = ways.way_of_plan(PLAN)
    print(f"\ncommanded: {PLAN}; that is {planned}\n")
    print(f"{'operator':10} {'vehicle':10} what the vehicle did")
    for outcome in outcomes:
        told = outcome.why_not
        if outcome.way:
            distance_m, angle_rad = outcome.way.missed(planned)
            told = f"{outcome.way}; missed by {distance_m:.2f} m, {math.degrees(angle_rad):.0f}°"
            if outcome.vehicle.remark:
                told += f" ({outcome.vehicle.remark})"
        print(f"{outcome.operator.name:10} {outcome.vehicle.name:10} {told}")
