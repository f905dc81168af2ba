# SPDX-License-Identifier: Apache-2.0
"""dronegui.launch.xml, all of it: a drone takes off, flies a square by the clock, and lands; its bridge is killed."""

import csv
import os
import signal

import pytest
from composition import launch
from ports import free_port, free_ports
from processes import Process, Stopwatch
from ros_session import wait_until
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


def test_a_bridge_that_is_killed_in_flight_and_comes_back_does_not_touch_the_drone(ros):
    """The drone takes the GUI for gone by then, so no navdata tell the new one that it flies."""
    port, navdata_port = free_ports(2)
    options = ("--port", port, "--navdata-port", navdata_port, "--bootstrapped", "--drone-patience", "0.5")
    with (
        Process.module("drone_bridge.dronegui.emulator", *options) as drone,
        launch("dronegui.launch.xml", dronegui_port=port, navdata_port=navdata_port) as composition,
    ):
        assert ros.trigger("dronegui_bridge/takeoff").success
        drone.wait_for_line("taking off -> flying")
        os.kill(int(composition.wait_for_line(r"dronegui_bridge-\d+ started \(pid (\d+)\)")[1]), signal.SIGKILL)
        drone.wait_for_line("the drone takes the GUI for gone")
        composition.wait_for_count("Listening for navdata", 2)
        for name in ("takeoff", "land"):
            refused = ros.call_successor(Trigger, f"dronegui_bridge/{name}", Trigger.Request())
            assert (refused.success, "It is not known whether the drone flies" in refused.message) == (False, True)
        drone.send(signal.SIGUSR1)  # "Start navdata"
        wait_until(lambda: ros.trigger("dronegui_bridge/land").success, "navdata")
        drone.wait_for_line("landing -> landed")
        assert drone.count_lines("emergency|reset:") == 0
        assert drone.count_lines("-> landing") == 1
