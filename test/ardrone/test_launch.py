# SPDX-License-Identifier: Apache-2.0
"""ardrone.launch.xml as a whole: an emulated drone flies its plan, and a JSON program flies it as well."""

import pytest
from composition import launch
from ports import free_ports
from processes import Process

from drone_bridge.msg import ControllerState

pytestmark = pytest.mark.exhaustive

PLAN = """
/**/drone_controller:
  ros__parameters:
    behaviour: waypoints
    waypoints.points: ["takeoff for=3", "forward=0.5 for=0.8", "for=0.6", "land"]
"""
NAMES = (
    *("ardrone_port", "ardrone_navdata_port", "ardrone_control_port", "ardrone_video_port"),
    *("programs_port", "programs_navdata_port"),
)


def test_a_drone_that_was_just_switched_on_flies_its_plan(ros, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    states = ros.subscribe(ControllerState, "/d1/drone_controller/state", 1000)
    ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
    with launch(
        "ardrone.launch.xml", emulate=True, control=True, namespace="d1", ardrone_plan=plan, **ports
    ) as composition:
        said = []
        states.wait(lambda state: said.append(state.state) or state.state in ("done", "failed"), timeout_s=120)
        assert said[-1] == "done"
        composition.wait_for_line("landing -> landed")


def test_a_program_for_the_gui_flies_the_drone_without_a_gui(ros):
    ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
    options = ("--port", ports["programs_port"], "--navdata-port", ports["programs_navdata_port"])
    with launch("ardrone.launch.xml", emulate=True, **ports) as composition:
        composition.wait_for_line("sends navdata")
        with Process.module("drone_bridge.dronegui.operator", *options, "--plan", "2s forward 0.3") as operator:
            composition.wait_for_line("taking off -> flying")
            composition.wait_for_line("landing -> landed")
            assert operator.wait() == 0
