# SPDX-License-Identifier: Apache-2.0
"""ardrone.launch.xml as a whole: a program for the GUI flies the drone."""

import pytest
from composition import launch
from ports import free_ports
from processes import Process

pytestmark = pytest.mark.exhaustive
PORTS = (
    *("ardrone_port", "ardrone_navdata_port", "ardrone_control_port", "ardrone_video_port"),
    *("programs_port", "programs_navdata_port"),
)


def test_a_program_for_the_gui_flies_the_drone_without_a_gui(ros):
    given = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    options = ("--port", given["programs_port"], "--navdata-port", given["programs_navdata_port"])
    with launch("ardrone.launch.xml", emulate=True, **given) as composition:
        composition.wait_for_line("sends navdata")
        with Process.module("drone_bridge.dronegui.vehicle.operator", *options, "--plan", "2s forward 0.3") as operator:
            composition.wait_for_line("taking off -> flying")
            composition.wait_for_line("landing -> landed")
            assert operator.wait() == 0
