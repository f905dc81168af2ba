# SPDX-License-Identifier: Apache-2.0
"""The scripted autopilot and the emulated testbed, in one process."""

import math
import threading

import pytest
from testbed_trajectory import motion_between, rows_of

from drone_bridge.testbed.codec import AttitudeLayout
from drone_bridge.testbed.vehicle import operator
from drone_bridge.testbed.vehicle.emulator import __main__ as emulator

PLAN = "3s forward 0.5, 2s turn 0.5, 3s up 0.4, 3s left 0.5, 1s"


@pytest.mark.parametrize("layout", list(AttitudeLayout))
def test_it_flies_its_plan(layout, free_port, tmp_path, capsys, monkeypatch):
    """In one process: both need one thread, and no signals."""
    monkeypatch.setattr("drone_bridge.stop_signals.signal.signal", lambda *_: None)
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
    for words in ("constants: Constants(", "leg 3s forward 0.5", "leg 2s turn 0.5", "the plan is done"):
        assert words in printed
