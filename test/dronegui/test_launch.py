# SPDX-License-Identifier: Apache-2.0
"""dronegui.launch.xml as a whole: a drone takes off, flies its plan and lands; its bridge is killed in flight."""

import re

import pytest
from composition import launch
from ports import free_ports

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
