# SPDX-License-Identifier: Apache-2.0
"""Each legacy operator steers each vehicle through standard topics: the distance from the end of its plan.

python campaign/any_operator.py [--short] [--operators NAME ...] [--vehicles NAME ...]

Operator ↔ its server ↔ topics ↔ the bridge of another protocol ↔ vehicle. Both halves are launch files that share only
the namespace. The vehicle's path is read from its emulator's file, independent of topics.
"""

import argparse
import csv
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import rclpy
from rclpy.client import Client
from std_srvs.srv import Trigger

from drone_bridge.motion.quaternions import euler_from_quaternion
from drone_bridge.programs.plan import Plan, parse_plan
from drone_bridge.simulator import units
from drone_bridge.testbed.units import enu_from_testbed, enu_yaw_from_heading
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of

#: The first rest is for discovery, the others for slow vehicles to stop.
PLAN = parse_plan("5s, 5s forward 0.4, 2s, 3s turn 0.5, 2s")
NAMESPACE = "any"
START_TIMEOUT_S = 60.0
#: Includes start, take-off and landing.
LONGEST_RUN_S = PLAN.duration_s + 60.0
#: Distance in the last second below which a vehicle is at rest, m.
STANDS_M = 0.15

Row = Mapping[str, str]
"""Row of the file that an emulator writes with --trajectory"""


class Pose(NamedTuple):
    """Pose of a vehicle: ENU in m, and rad to the left, REP 103."""

    x: float
    y: float
    z: float
    yaw: float


# Vehicles and operators.


def _pose_in_degrees(row: Row) -> Pose:
    return Pose(float(row["x"]), float(row["y"]), float(row["z"]), math.radians(float(row["yaw"])))


def _pose_of_testbed(row: Row) -> Pose:
    """Convert the pose of its own axes, degrees to the right."""
    x, y, z = enu_from_testbed(*(float(row[name]) for name in "xyz"))
    return Pose(x, y, z, enu_yaw_from_heading(math.radians(float(row["heading"]))))


def _pose_of_simulator(row: Row) -> Pose:
    """Convert from north, east, down."""
    x, y, z = units.world(*(float(row[name]) for name in "xyz"))
    q = units.orientation([float(row[name]) for name in ("qw", "qx", "qy", "qz")])
    return Pose(x, y, z, euler_from_quaternion(q)[2])


def _pose_of_robot(row: Row) -> Pose:
    return Pose(float(row["x"]), float(row["y"]), 0.0, float(row["heading"]))


#: Reports that some operators need besides the velocity, with the reason for skipping a pair.
NEEDS = {
    "gyroscope": "its operators need body rates, and this vehicle reports none",
    "odom": "its operators need a position, and this vehicle reports none",
}


@dataclass(frozen=True, slots=True)
class Vehicle:
    """An emulated vehicle, started by its launch file."""

    pose: Callable[[Row], Pose] = _pose_in_degrees
    arguments: Mapping[str, object] = field(default_factory=dict)  # of the launch file
    reports: frozenset[str] = frozenset({"odom"})  # of NEEDS, and "cameras"
    takeoff: str = ""
    """Service for its take-off, for operators without such a command"""
    starts_in_the_air: bool = False
    """Whether it reports that it flies from the start, so that operators must not take off"""


@dataclass(frozen=True, slots=True)
class Operator:
    """A scripted operator and its server, started by the server's launch file."""

    needs: str = ""  # of NEEDS
    serving: Callable[[frozenset[str]], Mapping[str, object]] = lambda _: {}
    """Converts the vehicle's reports to arguments of the server's launch file"""
    server_parameters: Mapping[str, float | str] = field(default_factory=dict)
    takes_off: bool = False
    """Whether it has a command for take-off, which `operator_in_the_air` of its launch file omits"""


#: By names of launch files and emulators.
VEHICLES = {
    "testbed": Vehicle(
        _pose_of_testbed,
        # Unused images are small, so that it keeps real time, like other operators.
        {"attitude_layout": "pose", "testbed_image_width": 64, "testbed_image_height": 48},
        frozenset({"cameras", "odom"}),
    ),
    "dronegui": Vehicle(takeoff="dronegui_bridge/takeoff"),
    "simulator": Vehicle(_pose_of_simulator, reports=frozenset({"gyroscope", "odom"})),
    "robot": Vehicle(_pose_of_robot),
    "telemetry": Vehicle(arguments={"gusts": 0.0}, reports=frozenset({"gyroscope"}), starts_in_the_air=True),
}
OPERATORS = {
    "testbed": Operator(
        serving=lambda reported: {
            "attitude_layout": "pose" if "odom" in reported else "pitch_roll",
            "testbed_cameras": "stereo" if "cameras" in reported else "none",
        }
    ),
    "dronegui": Operator(
        # At full deflection, as its programs assume: m/s and rad/s.
        server_parameters={
            **{"full_scale.roll": 5.0, "full_scale.pitch": 5.0, "full_scale.yaw": 1.745, "full_scale.gas": 0.7},
            "command_output": "cmd_vel",
        },
        takes_off=True,
    ),
    "simulator": Operator("odom"),
    "robot": Operator(),
    "telemetry": Operator("gyroscope", server_parameters={"command_output": "cmd_vel"}),
}

# End of a plan, and path of a vehicle.


@dataclass(frozen=True, slots=True)
class Displacement:
    """Displacement from start to end, in the vehicle's frame at the start."""

    ahead_m: float
    left_m: float
    turned_rad: float  # to the left, including full turns

    def error_to(self, other: "Displacement") -> tuple[float, float]:
        """Return the distance between the ends of two displacements, m, and the difference of their headings, rad."""
        return (
            math.hypot(self.ahead_m - other.ahead_m, self.left_m - other.left_m),
            abs(self.turned_rad - other.turned_rad),
        )

    def __str__(self) -> str:
        ahead_m, left_m, turned = (round(value, 2) + 0.0 for value in (self.ahead_m, self.left_m, self.turned_rad))
        return f"{ahead_m:5.2f} m ahead, {left_m:5.2f} m left, {math.degrees(turned):4.0f}° left"


def displacement_of_plan(plan: Plan) -> Displacement:
    """Return the displacement of a plan that is followed exactly."""
    x = y = yaw = 0.0
    for leg in plan.legs:
        # A leg is an arc: its chord is shorter by sin(half) / half, and rotated by half of the arc's angle.
        half = leg.turn * leg.duration_s / 2
        shortening = math.sin(half) / half if half else 1.0
        ahead, left = (speed * leg.duration_s * shortening for speed in (leg.forward, leg.left))
        cosine, sine = math.cos(yaw + half), math.sin(yaw + half)
        x, y, yaw = x + cosine * ahead - sine * left, y + sine * ahead + cosine * left, yaw + 2 * half
    return Displacement(x, y, yaw)


def displacement_along(poses: Sequence[Pose]) -> Displacement:
    """Return the displacement from the first pose to the last one."""
    start, end = poses[0], poses[-1]
    turned = math.fsum(math.remainder(after.yaw - before.yaw, math.tau) for before, after in itertools.pairwise(poses))
    cosine, sine = math.cos(start.yaw), math.sin(start.yaw)
    x, y = end.x - start.x, end.y - start.y
    return Displacement(cosine * x + sine * y, cosine * y - sine * x, turned)


def read_rows(path: Path) -> list[Row]:
    """Read an emulator's trajectory, except an incomplete last line. Raises ValueError if it is empty."""
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[Row] = [row for row in csv.DictReader(file) if None not in row.values()]
    if not rows:
        raise ValueError(f"{path.name} has no positions.")
    return rows


def stands(rows: Sequence[Row], poses: Sequence[Pose]) -> bool:
    """Return whether the vehicle moved by less than STANDS_M in the last second."""
    end_s = float(rows[-1]["time"])
    last = [pose[:3] for row, pose in zip(rows, poses, strict=True) if float(row["time"]) >= end_s - 1.0]
    return max(math.dist(place, last[-1]) for place in last) < STANDS_M


# Pairs, one at a time.


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one pair, or the reason why it was skipped or failed."""

    is_good: bool
    remark: str


def obstacle(operator: Operator, vehicle: Vehicle) -> str:
    """Return why a pair is skipped; empty if it is not."""
    return "" if operator.needs in {"", *vehicle.reports} else NEEDS[operator.needs]


def fly(operator_name: str, vehicle_name: str) -> Outcome:
    """Let one operator steer one vehicle along the plan."""
    operator, vehicle = OPERATORS[operator_name], VEHICLES[vehicle_name]
    if why_not := obstacle(operator, vehicle):
        return Outcome(True, why_not)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        trajectory = scratch / "trajectory.csv"
        arguments = {"emulate": True, f"{vehicle_name}_trajectory": trajectory, **vehicle.arguments}
        driven = _compose(f"{vehicle_name}.launch.xml", {}, scratch, arguments)
        try:
            if not driven.wait_for(r"_bridge\]: ", START_TIMEOUT_S):
                return Outcome(False, "its bridge did not start")
            if vehicle.takeoff and not operator.takes_off:
                _call(f"/{NAMESPACE}/{vehicle.takeoff}")
            arguments = {"operate": True, "operator_plan": PLAN, **operator.serving(vehicle.reports)}
            if operator.takes_off and vehicle.starts_in_the_air:
                arguments["operator_in_the_air"] = True
            serving = _compose(f"{operator_name}_server.launch.xml", operator.server_parameters, scratch, arguments)
            try:
                if not serving.wait_for(r"\[launch\] (?!\w+_server)\S+ (ended|exited|died)", LONGEST_RUN_S):
                    return Outcome(False, "the operator did not finish its plan")
            finally:
                serving.stop()
        finally:
            driven.stop()
        rows = read_rows(trajectory)
    poses = [vehicle.pose(row) for row in rows]
    displacement = displacement_along(poses)
    distance_m, angle_rad = displacement.error_to(displacement_of_plan(PLAN))
    remark = f"{displacement}; missed by {distance_m:.2f} m, {math.degrees(angle_rad):.0f}°"
    return Outcome(True, remark) if stands(rows, poses) else Outcome(False, f"{remark}; it did not stop")


def _compose(
    launch_file: str, parameters: Mapping[str, float | str], scratch: Path, arguments: Mapping[str, object]
) -> Composition:
    """Start a launch file on free ports, and set these parameters in nodes that have them."""
    given: dict[str, object] = {port: free_port() for port in ports_of(launch_file)}
    if parameters:
        given["params_file"] = file = scratch / f"{launch_file}.yaml"
        file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
    return Composition(launch_file, scratch / f"{launch_file}.log", namespace=NAMESPACE, **given, **arguments)


def _call(service: str) -> None:
    """Call a std_srvs/Trigger, and wait for its response. Raises RuntimeError."""
    rclpy.init()
    try:
        node = rclpy.create_node("any_operator")
        client: Client[Any, Any] = node.create_client(Trigger, service)
        if not client.wait_for_service(START_TIMEOUT_S):
            raise RuntimeError(f"The service {service} does not exist.")
        called = client.call_async(Trigger.Request())
        rclpy.spin_until_future_complete(node, called, timeout_sec=START_TIMEOUT_S)
        answer = called.result()
        if answer is None or not answer.success:
            raise RuntimeError(f"{service}: {answer.message if answer else 'no response'}")
    finally:
        rclpy.shutdown()


def main(short: bool, operators: Collection[str] = (), vehicles: Collection[str] = ()) -> int:
    """Fly all pairs of the given names, by default all; return 1 if a vehicle did not stop or a pair did not fly."""
    isolate_ros_graph()
    if short:
        operators, vehicles = operators or ("dronegui",), vehicles or ("robot", "telemetry")
    print(f"commanded: {PLAN}; that is {displacement_of_plan(PLAN)}")
    outcomes = []
    for pair in itertools.product(operators or OPERATORS, vehicles or VEHICLES):
        outcomes.append(fly(*pair))
        print(f"{pair[0]:10} {pair[1]:10} {outcomes[-1].remark}", flush=True)
    print(f"{sum(outcome.is_good for outcome in outcomes)} of {len(outcomes)} pairs flew and stopped, or were skipped")
    return int(not all(outcome.is_good for outcome in outcomes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two pairs")
    parser.add_argument("--operators", nargs="+", choices=OPERATORS, default=(), metavar="NAME")
    parser.add_argument("--vehicles", nargs="+", choices=VEHICLES, default=(), metavar="NAME")
    options = parser.parse_args()
    sys.exit(main(options.short, options.operators, options.vehicles))
