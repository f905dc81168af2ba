# SPDX-License-Identifier: Apache-2.0
"""The short examples: ten lines that drive, and a ROS vehicle that an old program drives."""

import re
import signal
import sys

import pytest
from composition import INTERRUPTED, launch
from nav_msgs.msg import Odometry
from ports import free_port, free_ports
from processes import Process
from repository import ROOT

from drone_bridge.tools.demo.composition import ports_of

pytestmark = pytest.mark.exhaustive

EXAMPLES = ROOT / "examples"
PLAN = "2s, 2s forward 0.4, 2s"  # the last rest is longer than two reports of where the vehicle is
PLACE = re.compile(r"^at (\S+) (\S+), (\S+) rad$", re.MULTILINE)


def test_ten_lines_drive_until_ctrl_c(domain, ros):
    odometry = ros.subscribe(Odometry, "odom")
    ports = {name: free_port() for name in ports_of("robot.launch.xml")}
    with launch("robot.launch.xml", emulate=True, **ports) as composition:
        composition.wait_for_line("has granted subsystem 0")
        with Process(sys.executable, EXAMPLES / "drive.py") as script:
            odometry.wait(lambda message: message.pose.pose.position.x > 0.2)
            assert script.stop(signal.SIGINT) == 0, script.output
        assert composition.stop(signal.SIGINT) in (0, INTERRUPTED)
        driven_m = float(re.search(r"ended: .* at x (\S+) m", composition.output)[1])
    assert driven_m > 0.1  # it has mass, and odom is what was commanded


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
