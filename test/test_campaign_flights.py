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
from drone_bridge.telemetry.emulator.world import Touchdown
from drone_bridge.testbed.emulator.world import COLUMNS as TESTBED_COLUMNS

sys.path.append(str(Path(__file__).resolve().parent.parent / "campaign"))
import any_operator
import landings
import seeded_flights

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


def test_pairs_that_make_no_sense_are_not_flown():
    said = {
        (operator, vehicle): why
        for operator, steering in any_operator.OPERATORS.items()
        for vehicle, steered in any_operator.VEHICLES.items()
        if (why := any_operator.obstacle(steering, steered))
    }
    assert said == {
        ("simulator", "landing"): any_operator.NEEDS["odom"],
        **dict.fromkeys(
            (("telemetry", each) for each in ("testbed", "dronegui", "robot")), any_operator.NEEDS["gyroscope"]
        ),
    }


def touchdown(error_m, *, on_rover=True):
    landed = Touchdown(12.34, on_rover=on_rover, position_error=error_m, vertical_speed=0.56, relative_speed=0.07)
    found = landings.landings(use_camera=False).ended.search(f"[landing-2] {landed.describe()}\n")
    assert found["where"] == ("rover" if on_rover else "ground")
    numbers = [float(found[name]) for name in ("time", "error", "vertical", "relative")]
    assert numbers == [12.34, error_m, 0.56, 0.07]
    assert (found["verdict"] == "good") == landed.is_good
    return found


@pytest.mark.parametrize("instead", [None, touchdown(0.9), touchdown(0.1, on_rover=False)])
def test_the_table_counts_good_landings_and_shows_the_worst(instead):
    flown = landings.landings(use_camera=False)
    results = {pattern: [touchdown(0.1)] * 4 for pattern in flown.conditions}
    results["square"][2] = instead
    heading, *lines = seeded_flights.table(flown, 4, results)
    rows = {line.split()[0]: line for line in lines}
    assert "off centre (m)" in heading
    assert rows.keys() == set(flown.conditions)
    assert "4 of 4  0.10 (0.10)" in rows["random"]
    assert "3 of 4" in rows["square"]
    assert ("(0.90)" in rows["square"]) == (bool(instead) and float(instead["error"]) == 0.9)


@pytest.mark.parametrize(("last", "status"), [(touchdown(0.9), 0), (None, 1)])
def test_a_bad_landing_is_a_figure_and_a_drone_that_does_not_come_down_a_failure(last, status, monkeypatch, capsys):
    flown = landings.landings(use_camera=False)
    ends = iter([*[touchdown(0.1)] * 9, last])

    class Standing:
        def stop(self):
            pass

    monkeypatch.setattr(seeded_flights, "ports_of", lambda _: ["telemetry_port"])
    monkeypatch.setattr(seeded_flights, "_compose", lambda *_: Standing())
    monkeypatch.setattr(seeded_flights, "_fly_once", lambda *_: next(ends))
    assert seeded_flights.fly(flown, 2) == status
    assert capsys.readouterr().out.splitlines()[-1] == f"9 of 10 flights are good, {status} did not end"
