# SPDX-License-Identifier: Apache-2.0
"""What the campaign makes of its flights: where plans lead, where vehicles went, which stand, and the table."""

import math
import sys
from pathlib import Path

import pytest

from drone_bridge.dronegui.emulator import COLUMNS as DRONE_COLUMNS
from drone_bridge.programs.plan import parse_plan
from drone_bridge.robot.emulator import COLUMNS as ROBOT_COLUMNS
from drone_bridge.simulator.emulator.server import COLUMNS as SIMULATOR_COLUMNS
from drone_bridge.testbed.emulator.world import COLUMNS as TESTBED_COLUMNS

sys.path.append(str(Path(__file__).resolve().parent.parent / "campaign"))
import any_operator

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
def test_where_a_plan_leads(plan, expected):
    gone = any_operator.displacement_of_plan(parse_plan(plan))
    assert close(gone, *expected)
    assert gone.error_to(any_operator.Displacement(3, 4, 1)) == pytest.approx(
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
def test_where_an_emulator_s_file_says_that_it_went_and_that_it_stands(name, columns, rows, tmp_path):
    """It looks west at first, goes 2 m, and turns left by a quarter."""
    times = [{**row, "time": 10.0 * number} for number, row in enumerate(rows)]
    lines = [",".join(columns), *(",".join(str(row.get(column, 0.0)) for column in columns) for row in times)]
    path = tmp_path / "way.csv"
    path.write_text("\n".join([*lines, "1.5,2"]))  # the emulator was stopped in the middle of a line
    read = any_operator.read_rows(path)
    poses = [any_operator.VEHICLES[name].pose(row) for row in read]
    assert close(any_operator.displacement_along(poses), 2, 0, math.pi / 2)
    assert any_operator.stands(read, poses)
    assert not any_operator.stands([{"time": str(n / 10)} for n in range(3)], poses)  # as if the 2 m were just gone
    path.write_text(lines[0])
    with pytest.raises(ValueError, match=r"way\.csv has no positions"):
        any_operator.read_rows(path)
