# SPDX-License-Identifier: Apache-2.0
"""dronegui.launch.xml, all of it: a drone takes off, flies a square by the clock, and lands; its bridge is killed."""

import csv
import os
import signal

import pytest
from composition import launch
from ports import free_port, free_ports
from processes import Stopwatch
from std_srvs.srv import Trigger

from drone_bridge.msg import ControllerState

SPEED_M_S = 0.5
PLAN = """
/**/drone_controller:
  ros__parameters:
    behaviour: flight_plan
    flight_plan.take_off_time: 3.0
    flight_plan.leg_time: 0.8
    flight_plan.pause_time: 0.6
    flight_plan.speed: {}
"""


def test_a_square_is_flown(ros, tmp_path):
    """By the clock: a leg is as much too long as the machine keeps the controller, the bridge or the drone waiting."""
    plan, trajectory = tmp_path / "plan.yaml", tmp_path / "flight.csv"
    plan.write_text(PLAN.format(SPEED_M_S))
    states = ros.subscribe(ControllerState, "/d1/drone_controller/state")
    arguments = {
        "emulate": True,
        "control": True,
        "namespace": "d1",
        "dronegui_port": free_port(),
        "navdata_port": free_port(),
        "dronegui_plan": plan,
        "dronegui_trajectory": trajectory,
    }
    with launch("dronegui.launch.xml", **arguments) as composition:
        states.wait(timeout_s=120)
        flying = Stopwatch(*composition.pids())
        last = states.wait(lambda state: state.state in ("done", "failed"), timeout_s=120)
        drift_m = SPEED_M_S * flying.waited_s
        assert last.state == "done", last.reason
        assert composition.count_lines("landing -> landed") == 1, "it was over before the drone was on the ground"
    with trajectory.open() as file:
        rows = [{key: float(value) for key, value in row.items() if key != "phase"} for row in csv.DictReader(file)]
    flown = [row for row in rows if row["z"] > 0.5]
    heights = [row["z"] for row in flown if not row["control_hover"]]
    assert max(row["x"] for row in flown) > 0.3
    assert min(row["y"] for row in flown) < -0.3
    assert (rows[-1]["x"], rows[-1]["y"]) == pytest.approx((0, 0), abs=0.4 + drift_m)
    assert max(heights) - min(heights) < 0.1


def test_a_bridge_that_is_killed_in_flight_and_comes_back_lets_the_drone_fly(ros):
    ports = dict(zip(("dronegui_port", "navdata_port"), free_ports(2), strict=True))
    with launch("dronegui.launch.xml", emulate=True, **ports) as composition:

        def call(service):
            return ros.call(Trigger, f"dronegui_bridge/{service}", Trigger.Request())

        assert call("takeoff").success
        composition.wait_for_line("taking off -> flying")
        os.kill(int(composition.wait_for_line(r"dronegui_bridge-\d+ started \(pid (\d+)\)")[1]), signal.SIGKILL)
        composition.wait_for_count("Listening for navdata", 2)
        answer = ros.call_successor(Trigger, "dronegui_bridge/takeoff", Trigger.Request())
        assert (answer.success, "The drone flies, as its navdata says" in answer.message) == (False, True)
        assert call("land").success
        composition.wait_for_line("landing -> landed")
        assert composition.count_lines("emergency|reset:") == 0
        assert composition.count_lines("-> landing") == 1
