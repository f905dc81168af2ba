# SPDX-License-Identifier: Apache-2.0
"""A short example: a ROS vehicle that an old program drives."""

import re
import sys

import pytest
from composition import launch
from ports import free_ports
from processes import Process
from repository import ROOT

pytestmark = pytest.mark.exhaustive

EXAMPLES = ROOT / "examples"
PLAN = "2s, 2s forward 0.4, 2s"  # the last rest is longer than two reports of where the vehicle is
PLACE = re.compile(r"^at (\S+) (\S+), (\S+) rad$", re.MULTILINE)


def test_an_old_program_drives_a_ros_vehicle_and_shows_its_voltage(domain):
    server_port, discovery_port = free_ports(2)
    ports = {"robot_server_port": server_port, "discovery_port": discovery_port}
    with Process(sys.executable, EXAMPLES / "old_program" / "vehicle.py") as vehicle:
        vehicle.wait_for_line("^at ")
        with launch("robot_server.launch.xml", operate=True, operator_plan=PLAN, **ports) as program:
            program.wait_for_line("is required: stopping everything")
            assert program.wait() == 0, program.output
        assert "reads battery 12300" in program.output, program.output
        places = [tuple(map(float, place)) for place in PLACE.findall(vehicle.output)]
    assert places[0] == (0, 0, 0)
    x, y, yaw = places[-1]
    assert x > 0.1  # how far depends on who else needs the processor
    assert (y, yaw) == (0, 0)
    assert places[-2] == places[-1]
