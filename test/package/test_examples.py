# SPDX-License-Identifier: Apache-2.0
"""The short examples: ten lines that fly, and a ROS vehicle that an old program drives."""

import csv
import math
import re
import signal
import sys

import pytest
from composition import INTERRUPTED, launch
from nav_msgs.msg import Odometry
from ports import free_port, free_ports
from processes import Process
from repository import ROOT

from drone_bridge.testbed.units import enu_from_testbed
from drone_bridge.tools.demo.composition import ports_of

pytestmark = pytest.mark.exhaustive

EXAMPLES = ROOT / "examples"
PLAN = "2s, 2s forward 0.4, 2s"  # the last rest is longer than two reports of where the vehicle is
PLACE = re.compile(r"^at (\S+) (\S+), (\S+) rad$", re.MULTILINE)


def test_ten_lines_fly_around_a_corner_and_land(domain, tmp_path):
    trajectory = tmp_path / "flight.csv"
    small = {"testbed_rate": 30.0, "testbed_image_width": 32, "testbed_image_height": 32}
    ways = {"testbed_port": free_port(), "testbed_trajectory": trajectory}
    with (
        launch("testbed.launch.xml", emulate=True, goals=True, attitude_layout="pose", **small, **ways) as composition,
        Process(sys.executable, EXAMPLES / "fly.py") as script,
    ):
        assert script.wait() == 0, script.output
        assert composition.count_lines("Traceback|ERROR") == 0
    with trajectory.open() as file:
        rows = list(csv.DictReader(line for line in file if line.endswith("\n")))
    places = [enu_from_testbed(*(float(row[name]) for name in "xyz")) for row in rows]
    corner = next(index for index, (x, _, _) in enumerate(places) if x > 1.8)
    assert max(abs(y) for _, y, _ in places[:corner]) < 0.2  # along x first
    x, y, z = places[-1]
    assert math.dist((x, y), (2.0, 2.0)) < 0.3
    assert z < max(height for _, _, height in places) - 0.5  # it came down


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
