# SPDX-License-Identifier: Apache-2.0
"""Where a plan leads, and where an emulator's file says that its vehicle went."""

import math

import pytest

from drone_bridge.dronegui.emulator import COLUMNS as DRONE_COLUMNS
from drone_bridge.programs.plan import parse_plan
from drone_bridge.robot.emulator import COLUMNS as ROBOT_COLUMNS
from drone_bridge.simulator.emulator.server import COLUMNS as SIMULATOR_COLUMNS
from drone_bridge.testbed.emulator.world import COLUMNS as TESTBED_COLUMNS
from drone_bridge.tools.demo import way
from drone_bridge.tools.demo.way import POSE_OF, Displacement

HALF = math.sqrt(0.5)


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
def test_the_route_of_a_plan(plan, expected):
    assert close(way.displacement_of_plan(parse_plan(plan)), *expected)


# The same way in the file of each: it looks west at first, goes 2 m, and turns left by a quarter.
FILES = {
    "testbed": (
        TESTBED_COLUMNS,
        [{"heading": -90}, {"x": -2, "heading": -179}, {"x": -2, "heading": 180}],
    ),
    "simulator": (
        SIMULATOR_COLUMNS,
        [{"qw": HALF, "qz": -HALF}, {"y": -2, "qw": HALF, "qz": -HALF}, {"y": -2, "qw": 0, "qz": 1}],
    ),
    "robot": (
        ROBOT_COLUMNS,
        [{"heading": math.pi}, {"x": -2, "heading": -math.pi}, {"x": -2, "heading": -math.pi / 2}],
    ),
    "dronegui": (
        DRONE_COLUMNS,
        [{"yaw": 180}, {"x": -2, "yaw": -179}, {"x": -2, "yaw": -90}],
    ),
}


@pytest.mark.parametrize("vehicle", FILES)
def test_the_route_recorded_in_a_file(vehicle, tmp_path):
    columns, rows = FILES[vehicle]
    lines = [",".join(columns), *(",".join(str(row.get(name, 0.0)) for name in columns) for row in rows)]
    path = tmp_path / "way.csv"
    path.write_text("\n".join([*lines, "1.5,2"]))  # the emulator was stopped in the middle of a line
    poses = [POSE_OF[vehicle](row) for row in way.read_rows(path)]
    assert close(way.displacement_along(poses), 2, 0, math.pi / 2)


def test_the_distance_between_the_ends_of_two_routes():
    assert Displacement(3, 4, 1).error_to(Displacement(0, 0, -1)) == (5, 2)


def test_a_file_without_positions_is_refused(tmp_path):
    path = tmp_path / "way.csv"
    path.write_text(",".join(ROBOT_COLUMNS))
    with pytest.raises(ValueError, match=r"way\.csv has no positions"):
        way.read_rows(path)
