# SPDX-License-Identifier: Apache-2.0
"""The scripted autopilot flies its plan, in every layout, and the testbed's own record says so."""

import math
import threading

import pytest
from composition import launch
from testbed_trajectory import motion_between, rows_of

from drone_bridge.testbed import operator
from drone_bridge.testbed.codec import AttitudeLayout
from drone_bridge.testbed.emulator import __main__ as emulator
from drone_bridge.tools.demo.composition import free_port as next_free_port

PLAN = "3s forward 0.5, 2s turn 0.5, 3s up 0.4, 3s left 0.5, 1s"


@pytest.mark.parametrize("layout", list(AttitudeLayout))
def test_it_flies_its_plan(layout, free_port, tmp_path, capsys, monkeypatch):
    """In one process: neither needs more than a thread, and signals are none of a thread's business."""
    monkeypatch.setattr("drone_bridge.programs.program.signal.signal", lambda *_: None)
    trajectory = tmp_path / "flight.csv"
    world = ["--wind", "0 0 0", "--once", "--width", "8", "--height", "8", "--trajectory", str(trajectory)]
    serving = ["--port", str(free_port), "--layout", layout.value, *world]
    testbed = threading.Thread(target=emulator.main, args=[serving])
    testbed.start()
    named = [] if layout is not AttitudeLayout.PITCH_ROLL else ["--layout", layout.value]
    assert operator.main(["--port", str(free_port), "--plan", PLAN, *named]) == 0
    testbed.join()

    rows = rows_of(trajectory)
    assert motion_between(rows, 2.0, 3.0) == pytest.approx((0.5, 0, 0, 0), abs=0.05)
    assert motion_between(rows, 4.0, 5.0)[3] == pytest.approx(0.5, abs=0.05)
    assert motion_between(rows, 7.0, 8.0) == pytest.approx((0, 0, 0.4, 0), abs=0.05)
    assert motion_between(rows, 10.0, 11.0) == pytest.approx((0, 0.5, 0, 0), abs=0.05)
    assert rows[-1]["thrust"] == pytest.approx(9.81, abs=0.05)  # it leaves the drone hovering
    assert math.hypot(rows[-1]["pitch_rate"], rows[-1]["roll_rate"], rows[-1]["yaw_rate"]) == 0.0
    printed = capsys.readouterr().out
    for words in ("constants: Constants(", "leg 3s forward 0.5", "leg 2s turn 0.5", "the plan is flown"):
        assert words in printed


def test_the_launch_file_puts_a_flight_through_ros(domain, tmp_path):
    trajectory, patient = tmp_path / "flight.csv", tmp_path / "patient.yaml"
    patient.write_text("/**/testbed_server: {ros__parameters: {source_timeout: 600.0}}")  # on a busy machine
    given = {
        "relay": True,
        "emulate": True,
        "operate": True,
        "operator_plan": "1s, 2s up 0.5",
        "testbed_image_width": 8,
        "testbed_image_height": 8,
    }
    ports = {"testbed_server_port": next_free_port(), "vehicle_port": next_free_port()}
    with launch(
        "testbed_server.launch.xml", **given, **ports, testbed_trajectory=trajectory, params_file=patient
    ) as flight:
        flight.wait_for_line("leg 2s up 0.5")
        flight.wait_for_line("the plan is flown", timeout_s=120)
        flight.wait_for_line(r"ended: \d\d+ frames")
    rows = rows_of(trajectory)
    assert 0.3 < max(row["vy"] for row in rows) < 0.6
    assert rows[-1]["thrust"] == pytest.approx(9.81, abs=0.05)  # it leaves the drone hovering
