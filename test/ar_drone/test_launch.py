# SPDX-License-Identifier: Apache-2.0
"""ardrone.launch.xml and dronegui.launch.xml as a whole: a drone takes off, flies its plan and lands."""

import re
import signal

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
    waypoints.points: ["takeoff for=3", "forward=0.5 for=0.8", "left=-0.5 for=0.8", "for=0.6", "land"]
"""
PORTS = {
    "ardrone": (
        *("ardrone_port", "ardrone_navdata_port", "ardrone_control_port", "ardrone_video_port"),
        *("programs_port", "programs_navdata_port"),
    ),
    "dronegui": ("dronegui_port", "navdata_port", "video_port"),
}


def ports(protocol):
    return dict(zip(PORTS[protocol], free_ports(len(PORTS[protocol])), strict=True))


@pytest.mark.parametrize("protocol", PORTS)
def test_a_drone_that_was_just_switched_on_flies_its_plan(ros, tmp_path, protocol):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    states = ros.subscribe(ControllerState, "/d1/drone_controller/state", 1000)
    given = {"emulate": True, "control": True, "namespace": "d1", f"{protocol}_plan": plan, **ports(protocol)}
    with launch(f"{protocol}.launch.xml", **given) as composition:
        said = []
        states.wait(lambda state: said.append(state.state) or state.state in ("done", "failed"), timeout_s=120)
        assert said[-1] == "done"
        composition.wait_for_line("landing -> landed")  # it may come after the state
        composition.stop(signal.SIGINT)
        x, y = map(float, re.search(r"ended: .*, landed, x=(\S+) y=(\S+) z=0\.00 m", composition.output).groups())
        assert (x, y) == pytest.approx((0.4, -0.4), abs=0.25), "by the clock"
        phases = re.findall(r"\[\w+-\d\] ([\w ]+ -> [\w ]+):", composition.output)
        # It ends when the drone is on the ground.
        assert phases == ["landed -> taking off", "taking off -> flying", "flying -> landing", "landing -> landed"]


def test_a_program_for_the_gui_flies_the_drone_without_a_gui(ros):
    given = ports("ardrone")
    options = ("--port", given["programs_port"], "--navdata-port", given["programs_navdata_port"])
    with launch("ardrone.launch.xml", emulate=True, **given) as composition:
        composition.wait_for_line("sends navdata")
        with Process.module("drone_bridge.dronegui.vehicle.operator", *options, "--plan", "2s forward 0.3") as operator:
            composition.wait_for_line("taking off -> flying")
            composition.wait_for_line("landing -> landed")
            assert operator.wait() == 0
