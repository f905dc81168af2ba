# SPDX-License-Identifier: Apache-2.0
"""Plans that launch files fly by the clock: squares of the AR.Drone, circles of the robot and of the landing's rover.

The AR.Drone flies one square by the time alone and one by its odometry; its bridge and controller are those of
dronegui.launch.xml. When the launch has ended, vehicles stand.
"""

import contextlib
import csv
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from composition import launch
from nav_msgs.msg import Odometry
from ports import free_port
from ros_session import RosSession
from step import Verdict

from drone_bridge.msg import ControllerState

PATIENCE_S = 240.0  # of a flight
BY_THE_TIME = """
/**/drone_controller:
  ros__parameters:
    behaviour: waypoints
    waypoints.points:
      - "takeoff for=3"
      - "forward=0.5 for=0.8"
      - "for=0.6"
      - "left=-0.5 for=0.8"
      - "for=0.6"
      - "forward=-0.5 for=0.8"
      - "for=0.6"
      - "left=0.5 for=0.8"
      - "for=0.6"
      - "land"
"""
CORNERS = ((0, 0), (2, 0), (2, -2), (0, -2), (0, 0))
AIRBORNE_M = 0.5
TOUCHDOWN = r"\[landing-\d\] (touchdown .*)"

Rows = list[dict[str, str]]


def rows_of(trajectory: Path) -> Rows:
    """Return the rows that an emulator has written."""
    with trajectory.open() as file:
        return list(csv.DictReader(file))


def places_of(rows: Rows, x: str = "x", y: str = "y") -> list[tuple[float, float]]:
    """Return the horizontal places in some rows, m."""
    return [(float(row[x]), float(row[y])) for row in rows]


def nearest(places: Sequence[tuple[float, float]], corner: tuple[float, float]) -> float:
    """Return how near places came to a corner, m."""
    return min(math.dist(place, corner) for place in places)


def fly_the_square(session: Any, folder: Path, plan: Path) -> tuple[Rows, str]:
    """Take off, fly a plan and land; return the rows of the flight, and the controller's last state."""
    trajectory, name = folder / "flight.csv", f"/{plan.stem}"
    states = session.subscribe(ControllerState, f"{name}/drone_controller/state")
    ports = {"dronegui_port": free_port(), "navdata_port": free_port()}
    options = {"dronegui_plan": plan, "dronegui_trajectory": trajectory, "namespace": name[1:], **ports}
    with launch("dronegui.launch.xml", emulate=True, control=True, **options) as composition:
        if plan.stem == "dronegui_waypoints":  # which leaves taking off and landing to others
            composition.wait_for_line("Sending to")
            assert session.trigger(f"{name}/dronegui_bridge/takeoff").success
        last = states.wait(lambda state: state.state in ("done", "failed"), PATIENCE_S)
        if plan.stem == "dronegui_waypoints":
            assert session.trigger(f"{name}/dronegui_bridge/land").success
        composition.wait_for_line("landing -> landed", PATIENCE_S)
    return rows_of(trajectory), f"{last.state} {last.reason}".strip()


def square_by_the_time(session: Any, folder: Path, verdict: Verdict) -> str:
    """Fly legs of a time each."""
    plan = folder / "by_the_time.yaml"
    plan.write_text(BY_THE_TIME)
    rows, last = fly_the_square(session, folder, plan)
    flown = [row for row in rows if row["phase"] == "flying" and float(row["z"]) > AIRBORNE_M]
    heights = [float(row["z"]) for row in flown]
    off = math.dist(places_of(rows)[-1], (0, 0))
    verdict.figure(f"square by the time: {last}, heights within {max(heights) - min(heights):.2f} m")
    return f"lands {off:.2f} m off after a square by the time"


def square_by_odometry(session: Any, folder: Path, verdict: Verdict) -> str:
    """Fly to waypoints."""
    plan = Path(get_package_share_directory("drone_bridge"), "config", "dronegui_waypoints.yaml")
    rows, last = fly_the_square(session, folder, plan)
    flown = places_of([row for row in rows if float(row["z"]) > AIRBORNE_M])
    missed = max(nearest(flown, corner) for corner in CORNERS)
    verdict.figure(f"square by odometry: {last}, corners within {missed:.2f} m")
    return f"{math.dist(places_of(rows)[-1], (0, 0)):.2f} m after one by odometry"


def circle_of_the_robot(session: Any, folder: Path, verdict: Verdict) -> str:
    """Drive half a circle of 0.3 m, and end the launch in the middle of it."""
    trajectory = folder / "way.csv"
    odometry = session.subscribe(Odometry, "/r1/odom")
    circle = {"rover_pattern": "circular", "rover_amplitude": 0.3, "robot_trajectory": trajectory, "namespace": "r1"}
    port = free_port()
    ports = {"robot_port": port, "discovery_port": port, "robot_name": "saber", "emulated_name": "saber"}
    with launch("robot.launch.xml", emulate=True, control=True, **circle, **ports) as composition:
        odometry.wait(lambda message: message.pose.pose.position.y > 0.3)
        composition.wait_for_line("Following the odometry")
    rows = rows_of(trajectory)
    left, right = float(rows[-1]["left"]), float(rows[-1]["right"])
    verdict.stopped(left == right == 0, f"the robot's motors were left at {left:g} and {right:g}")
    off = max(abs(math.dist(place, (0, 0.3)) - 0.3) for place in places_of(rows))
    return f"the robot's circle within {off:.2f} m"


def circle_of_the_rover(session: Any, folder: Path, verdict: Verdict) -> str:
    """Lead the landing's rover on a circle of 1.5 m, and land on it."""
    trajectory = folder / "landing.csv"
    circle = {"rover_pattern": "circular", "rover_amplitude": 1.5, "landing_start": "ground"}
    places = {"landing_trajectory": trajectory, "telemetry_port": free_port()}
    with launch("landing.launch.xml", emulate=True, control=True, rover=True, **circle, **places) as composition:
        touchdown = composition.wait_for_line(TOUCHDOWN, PATIENCE_S)[1]
    off = max(abs(math.dist(place, (0, 1.5)) - 1.5) for place in places_of(rows_of(trajectory), "rover_x", "rover_y"))
    verdict.figure(f"landing on a rover that is led: {touchdown}")
    return f"the rover's within {off:.2f} m"


def main(short: bool) -> int:
    """Fly and drive each, and print how far from its plan it was."""
    flights: tuple[Callable[[Any, Path, Verdict], str], ...] = (
        square_by_the_time,
        square_by_odometry,
        circle_of_the_robot,
        circle_of_the_rover,
    )
    verdict = Verdict()
    for _ in range(1 if short else 5):
        figures = []
        for flight in flights:
            with tempfile.TemporaryDirectory() as folder, contextlib.closing(RosSession()) as session:
                figures.append(flight(session, Path(folder), verdict))
        verdict.figure(", ".join(figures))
    return verdict.status
