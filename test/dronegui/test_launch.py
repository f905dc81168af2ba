# SPDX-License-Identifier: Apache-2.0
"""dronegui.launch.xml as a whole: a drone takes off, flies its plan and lands; its bridge is killed in flight."""

import os
import re
import signal

import pytest
from composition import launch
from ports import free_ports
from processes import Process
from ros_session import wait_until
from std_srvs.srv import Trigger

from drone_bridge.msg import ControllerState

pytestmark = pytest.mark.exhaustive

PLAN = """
/**/drone_controller:
  ros__parameters:
    behaviour: waypoints
    waypoints.points: ["takeoff for=3", "forward=0.5 for=0.8", "left=-0.5 for=0.8", "for=0.6", "land"]
"""


def test_a_drone_takes_off_flies_its_plan_and_lands(ros, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    states = ros.subscribe(ControllerState, "/d1/drone_controller/state", 1000)
    ports = dict(zip(("dronegui_port", "navdata_port", "video_port"), free_ports(3), strict=True))
    with launch(
        "dronegui.launch.xml", emulate=True, control=True, namespace="d1", dronegui_plan=plan, **ports
    ) as composition:
        said = []
        states.wait(lambda state: said.append(state.state) or state.state in ("done", "failed"), timeout_s=120)
        assert said[-1] == "done"
        composition.wait_for_line("landing -> landed")  # it may come after the state
        phases = re.findall(r"\[dronegui-\d\] ([\w ]+ -> [\w ]+):", composition.output)
        # It ends when the drone is on the ground.
        assert phases == ["landed -> taking off", "taking off -> flying", "flying -> landing", "landing -> landed"]


def test_bridge_killed_in_flight_restarts_without_touching_the_drone(ros):
    """The GUI was restarted meanwhile, so that the new bridge gets no navdata about the flight."""
    port, navdata_port, video_port = free_ports(3)
    options = ("--port", port, "--navdata-port", navdata_port, "--no-video", "--bootstrapped")
    ports = {"dronegui_port": port, "navdata_port": navdata_port, "video_port": video_port}
    with (
        Process.module("drone_bridge.dronegui.emulator", *options) as drone,
        launch("dronegui.launch.xml", **ports) as composition,
    ):
        wait_until(lambda: ros.trigger("dronegui_bridge/takeoff").success, "navdata before the take-off")
        drone.wait_for_line("taking off -> flying")
        os.kill(int(composition.wait_for_line(r"dronegui_bridge-\d+ started \(pid (\d+)\)")[1]), signal.SIGKILL)
        drone.send(signal.SIGURG)
        drone.wait_for_line("the GUI was restarted")
        composition.wait_for_count("Listening for navdata", 2)
        for name in ("takeoff", "land"):
            refused = ros.call_successor(Trigger, f"dronegui_bridge/{name}", Trigger.Request())
            assert (refused.success, "It is unknown whether the drone flies" in refused.message) == (False, True)
        drone.send(signal.SIGUSR1)  # "Stream Navdata"
        wait_until(lambda: ros.trigger("dronegui_bridge/land").success, "navdata")
        drone.wait_for_line("landing -> landed")
        assert drone.count_lines("emergency|reset:") == 0
        assert drone.count_lines("-> landing") == 1
