# SPDX-License-Identifier: Apache-2.0
"""Printed launches, emulators and operators: what the emulator says at its end."""

import time

import pytest
from shell import Shell
from witnesses import TOUCHDOWN, way

pytestmark = pytest.mark.exhaustive

GOOD = TOUCHDOWN.replace(r"(\w+)", "rover").replace("(good|bad)", "good")
REACHED = "target reached at t="
#: Emulated vehicles: what ends the trial, a line of the emulator or a number of seconds; how far from the start, m.
EMULATED = [
    ("drone-bridge launch ardrone.launch.xml emulate:=true control:=true", r"^\[ardrone.*\blanded\b", (0.0, 1.0)),
    ("drone-bridge launch dronegui.launch.xml emulate:=true control:=true", r"^\[dronegui.*\blanded\b", (0.0, 1.0)),
    ("drone-bridge launch testbed.launch.xml emulate:=true control:=true view:=true", REACHED, None),
    ("drone-bridge launch simulator.launch.xml emulate:=true control:=true view:=true", 15, (0.5, 9.0)),
    ("drone-bridge launch robot.launch.xml emulate:=true control:=true", 10, (0.5, 3.5)),
    ("drone-bridge launch robot.launch.xml emulate:=true control:=true rover_pattern:=circular", 10, (0.5, 4.5)),
    ("drone-bridge launch telemetry.launch.xml emulate:=true control:=true view:=true", GOOD, None),
    ("drone-bridge launch testbed.launch.xml emulate:=true view:=true testbed_seed:=3", 8, None),
    ("drone-bridge launch tello.launch.xml emulate:=true view:=true", 8, (0.0, 0.1)),
    ("drone-bridge launch robot emulate:=true view:=true", 5, (0.0, 0.0)),
    ("drone-bridge launch all.launch.xml view:=true", 15, None),
    ("drone-bridge launch examples/drones.launch.xml emulate:=true control:=true view:=true", REACHED, None),
    ("drone-bridge launch testbed_server.launch.xml relay:=true emulate:=true operate:=true", None, None),
    ("drone-bridge launch dronegui_server.launch.xml relay:=true emulate:=true operate:=true", None, (0.3, 9.0)),
    ("drone-bridge launch robot_server.launch.xml relay:=true emulate:=true operate:=true", None, (0.3, 9.0)),
    ("drone-bridge launch simulator_server.launch.xml relay:=true emulate:=true operate:=true", None, (0.3, 9.0)),
    ("drone-bridge launch telemetry_server.launch.xml relay:=true emulate:=true operate:=true", None, (0.3, 9.0)),
    ("drone-bridge launch testbed.launch.xml emulate:=true control:=true", REACHED, None),
    ("drone-bridge launch simulator.launch.xml emulate:=true control:=true simulator_scene:=buoys", 15, (0.5, 9.0)),
    ("drone-bridge launch telemetry.launch.xml emulate:=true control:=true rover_pattern:=circular", GOOD, None),
    ("drone-bridge launch create2.launch.xml emulate:=true view:=true", 5, (0.0, 0.0)),
    ("drone-bridge launch kobuki.launch.xml emulate:=true view:=true", 5, (0.0, 0.0)),
    ("drone-bridge launch pioneer.launch.xml emulate:=true view:=true", 5, (0.0, 0.0)),
    ("drone-bridge launch robomaster.launch.xml emulate:=true view:=true", 5, (0.0, 0.0)),
    ("drone-bridge launch vehicle.launch.xml robot:=pioneer emulate:=true view:=true", 5, (0.0, 0.0)),
    ("drone-bridge launch all.launch.xml", 10, None),
]


@pytest.mark.parametrize(("command", "until", "metres"), EMULATED, ids=lambda each: str(each)[-60:])
def test_an_emulated_vehicle(command, until, metres):
    with Shell() as shell:
        launch = shell.start(command)
        if until is None:  # it ends by itself, when the operator's plan does
            assert launch.wait(120) == 0, launch.text
            said = launch.text
        else:
            launch.wait_for_line(until, 120) if isinstance(until, str) else time.sleep(until)
            said = launch.ctrl_c()
        assert "ERROR" not in said
        assert " died" not in said
        if metres:
            assert metres[0] <= way(said) <= metres[1], said
