# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: where they run, what they make of what they get, and those that are short, for real."""

import io
import math
import os
import re
import sys

import pytest
from processes import Process, executable

from drone_bridge.dronegui.emulator import COLUMNS as DRONE_COLUMNS
from drone_bridge.kind import kinds, load
from drone_bridge.programs.demonstration import NEEDS, Condition
from drone_bridge.programs.plan import parse_plan
from drone_bridge.robot.emulator import COLUMNS as ROBOT_COLUMNS
from drone_bridge.simulator.emulator.server import COLUMNS as SIMULATOR_COLUMNS
from drone_bridge.telemetry.emulator.world import Touchdown
from drone_bridge.testbed.emulator.world import COLUMNS as TESTBED_COLUMNS
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.demo import any_vehicle, composition, progress, way
from drone_bridge.tools.demo.command import main
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.series import fly, replace, report

NAMES = ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY", "ROS_DISTRO")
LOOPBACK_PROFILE = "/share/drone_bridge/config/fastdds_loopback.xml"
DEMONSTRATIONS = {name: load(kind.demonstration) for name, kind in kinds().items()}
LANDINGS = DEMONSTRATIONS["telemetry"].flights
HALF = math.sqrt(0.5)


@pytest.mark.parametrize(
    ("variables", "reach", "localhost_only"),
    [
        ({"ROS_DISTRO": "humble"}, "LOCALHOST", "1"),
        ({"ROS_DISTRO": "kilted"}, "LOCALHOST", None),
        ({"FASTDDS_DEFAULT_PROFILES_FILE": LOOPBACK_PROFILE}, "SYSTEM_DEFAULT", None),
        # Another middleware does not read that profile.
        (
            {"FASTDDS_DEFAULT_PROFILES_FILE": LOOPBACK_PROFILE, "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"},
            "LOCALHOST",
            None,
        ),
    ],
)
def test_a_demonstration_stays_on_this_machine(monkeypatch, variables, reach, localhost_only):
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that all of them are put back
    monkeypatch.delenv("ROS_LOCALHOST_ONLY")
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    composition.isolate_ros_graph()
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == reach
    assert os.environ.get("ROS_LOCALHOST_ONLY") == localhost_only


def test_a_demonstration_avoids_domains_with_nodes(domain, ros, monkeypatch):
    monkeypatch.setattr(composition, "DOMAINS", (domain, 0))
    assert {composition.unused_domain() for _ in range(20)} == {0}


@pytest.mark.parametrize("number", ["0", "-1", "2.5", "x"])
def test_a_number_of_vehicles_is_at_least_one(number, capsys):
    with pytest.raises(SystemExit):
        main(["fleet", "--drones", number])
    assert f"--drones: must be a whole number of at least 1, not {number}" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["testbed", "landing", "any"])
def test_a_folder_that_can_t_be_created_is_refused_with_the_reason(what, monkeypatch, capsys):
    for name in NAMES:
        monkeypatch.setenv(name, "")
    assert main([what, "--folder", "/proc/demo"]) == REFUSED
    assert re.search(r"^drone-bridge demo: '/proc/demo.*': No such file or directory\.$", capsys.readouterr().err)


class Terminal(io.StringIO):
    """Standard output that people look at."""

    def isatty(self):
        return True


def test_a_log_gets_a_line_per_second_and_a_terminal_one_that_is_redrawn(monkeypatch, capsys):
    now_s = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    terminal = Terminal()
    with Progress() as shown, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        on_terminal = Progress()
        for number in range(50):
            on_terminal.show(f"line {number}")
            patch.undo()
            shown.show(f"line {number}")
            patch.setattr(sys, "stdout", terminal)
            now_s += 0.25
    assert capsys.readouterr().out.splitlines() == [f"line {number}" for number in range(0, 50, 4)]
    for _ in range(3):
        shown.show("line 49")
        now_s += 2.0
    assert capsys.readouterr().out == "line 49\n"  # a log says nothing twice
    assert "\n" not in terminal.getvalue()
    assert "line 49" in terminal.getvalue()


def close(gone, *numbers):
    return (gone.ahead_m, gone.left_m, gone.turned_rad) == pytest.approx(numbers, abs=1e-6)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("2s forward 0.5, 3s", (1, 0, 0)),
        ("2s left 0.5", (0, 1, 0)),
        ("1s turn 7", (0, 0, 7)),
        (f"1s turn {math.pi / 2}, 2s forward 1", (0, 2, math.pi / 2)),
        (f"1s forward {math.pi / 2} turn {math.pi / 2}", (1, 1, math.pi / 2)),  # a quarter of a circle of 1 m
        ("9s up 1", (0, 0, 0)),
    ],
)
def test_where_a_plan_leads(plan, expected):
    gone = way.displacement_of_plan(parse_plan(plan))
    assert close(gone, *expected)
    assert gone.error_to(way.Displacement(3, 4, 1)) == pytest.approx(
        (math.hypot(3 - expected[0], 4 - expected[1]), abs(1 - expected[2]))
    )


@pytest.mark.parametrize(
    ("name", "columns", "rows"),
    [
        ("testbed", TESTBED_COLUMNS, [{"heading": -90}, {"x": -2, "heading": -179}, {"x": -2, "heading": 180}]),
        (
            "simulator",
            SIMULATOR_COLUMNS,
            [{"qw": HALF, "qz": -HALF}, {"y": -2, "qw": HALF, "qz": -HALF}, {"y": -2, "qw": 0, "qz": 1}],
        ),
        (
            "robot",
            ROBOT_COLUMNS,
            [{"heading": math.pi}, {"x": -2, "heading": -math.pi}, {"x": -2, "heading": -math.pi / 2}],
        ),
        ("dronegui", DRONE_COLUMNS, [{"yaw": 180}, {"x": -2, "yaw": -179}, {"x": -2, "yaw": -90}]),
    ],
)
def test_where_an_emulator_s_file_says_that_it_went(name, columns, rows, tmp_path):
    """It looks west at first, goes 2 m, and turns left by a quarter."""
    lines = [",".join(columns), *(",".join(str(row.get(name, 0.0)) for name in columns) for row in rows)]
    path = tmp_path / "way.csv"
    path.write_text("\n".join([*lines, "1.5,2"]))  # the emulator was stopped in the middle of a line
    poses = [DEMONSTRATIONS[name].pose(row) for row in way.read_rows(path)]
    assert close(way.displacement_along(poses), 2, 0, math.pi / 2)
    path.write_text(lines[0])
    with pytest.raises(ValueError, match=r"way\.csv has no positions"):
        way.read_rows(path)


def touchdown(error_m, *, on_rover=True):
    landed = Touchdown(12.34, on_rover=on_rover, position_error=error_m, vertical_speed=0.56, relative_speed=0.07)
    found = LANDINGS.done.search(f"[landing-2] {landed.describe()}\n")
    assert found["where"] == ("rover" if on_rover else "ground")
    numbers = [float(found[name]) for name in ("time", "error", "vertical", "relative")]
    assert numbers == [12.34, error_m, 0.56, 0.07]
    assert (found["verdict"] == "good") == landed.is_good
    return found


@pytest.mark.parametrize(
    ("spoiled", "status"), [([], 0), ([3], 0), ([3, 4], 1)], ids=["none is bad", "one is bad", "two are bad"]
)
@pytest.mark.parametrize("instead", [None, touchdown(0.9), touchdown(0.1, on_rover=False)])
def test_nineteen_of_twenty_are_enough_for_each_condition(capsys, spoiled, status, instead):
    results = {pattern: [touchdown(0.1)] * 20 for pattern in LANDINGS.conditions}
    for seed in spoiled:
        results["square"][seed] = instead
    assert report(LANDINGS, 20, results) == status
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if " of 20" in line}
    assert lines.keys() == set(LANDINGS.conditions)
    assert f"{20 - len(spoiled)} of 20" in lines["square"]
    assert "20 of 20" in lines["random"]


@pytest.mark.slow
def test_each_seed_is_flown_under_each_condition(domain):
    condition = Condition(
        {"testbed_bridge_role": "listen"}, lambda seed: f"--role connect --seed {seed} --once --steps 2"
    )
    flights = replace(
        DEMONSTRATIONS["testbed"].flights,
        done=re.compile(r"ended: (\d+) steps"),
        conditions={"one": condition, "other": condition},
    )
    results = fly(kinds()["testbed"], flights, 2, 2)
    assert {name: [found[1] for found in flights] for name, flights in results.items()} == {
        "one": ["2", "2"],
        "other": ["2", "2"],
    }


@pytest.mark.slow
def test_the_picture_is_drawn(tmp_path):
    from drone_bridge.tools.demo.picture import Flight, draw  # with matplotlib, for which no other test waits

    rows = [{"rover_x": "1", "rover_y": "0"}] * 11
    positions = [(1.0, 0.0, 5.3 - t / 2) for t in range(11)]
    landing = Flight("drone", range(11), positions, LANDINGS.targets(7, rows), 10.0)
    assert landing.distances_m[[0, 10]] == pytest.approx([5, 0])
    draw(tmp_path / "landing.png", [landing])
    assert (tmp_path / "landing.png").read_bytes().startswith(b"\x89PNG")


def test_a_gui_s_client_drives_a_tracked_robot(domain, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(any_vehicle, "isolate_ros_graph", lambda: None)  # tests are alone already
    monkeypatch.setattr(any_vehicle, "PLAN", parse_plan("4s, 3s forward 0.4, 1s"))
    assert any_vehicle.show(["dronegui"], ["robot"], tmp_path) == 0
    assert re.match(r"dronegui +robot +1\.\d\d m ahead", capsys.readouterr().out.splitlines()[-1])


def test_impossible_pairs_and_unknown_names_are_refused_with_the_reason(tmp_path):
    said = {
        (operator, vehicle): why
        for operator, steering in DEMONSTRATIONS.items()
        for vehicle, steered in DEMONSTRATIONS.items()
        if (why := any_vehicle.obstacle(steering, steered))
    }
    assert said == {
        ("simulator", "telemetry"): NEEDS["odom"],
        **dict.fromkeys((("telemetry", each) for each in ("testbed", "dronegui", "robot")), NEEDS["gyroscope"]),
    }
    with pytest.raises(SystemExit, match=r"Unknown: boat\. Available: testbed, dronegui, simulator, robot, landing\."):
        any_vehicle.show(None, ["robot", "boat"], tmp_path)


def test_all_bridges_together_bring_their_topics(tmp_path):
    with Process(executable("drone-bridge"), "demo", "all", "--duration", 5, "--folder", tmp_path) as demo:
        assert demo.wait(300) == 0, demo.output
    rows = [line.split() for line in demo.lines if line.strip().startswith("/")]
    (dropped,) = (line for line in demo.lines if line.startswith("Dropped messages: "))
    for kind in kinds().values():
        system = kind.launch_file.removesuffix(".launch.xml")
        rates = [row[3] for row in rows if row[0].startswith(f"/{system}/")]
        assert any(float(rate) > 10 for rate in rates if rate != "-"), system
        assert f"{system} " in dropped
