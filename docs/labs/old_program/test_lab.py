# SPDX-License-Identifier: Apache-2.0
"""The old program drives the vehicle, in real time, with the server between them."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).with_name(f"{os.environ.get('LAB', 'start')}.py")
PLAN = "2s, 2s forward 0.4, 1s"


def free_port(kind):
    with socket.socket(type=kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def drive():
    """What the vehicle and the old program have printed, once its plan is driven."""
    os.environ["ROS_DOMAIN_ID"] = str(os.getpid() % 100 + 1)  # of this test alone
    ports = [f"robot_server_port:={free_port(socket.SOCK_STREAM)}", f"discovery_port:={free_port(socket.SOCK_DGRAM)}"]
    launch = [sys.executable, "-m", "drone_bridge.tools.cli", "launch", "robot_server.launch.xml", *ports]
    launch += ["operate:=true", f"operator_plan:={PLAN}", "flights:=false"]
    with subprocess.Popen([sys.executable, LAB], stdout=subprocess.PIPE, text=True) as vehicle:
        try:
            assert vehicle.stdout.readline().startswith("at "), "it has to print where it is"
            program = subprocess.run(launch, capture_output=True, text=True, timeout=120, check=False).stdout
        finally:
            vehicle.terminate()
        return vehicle.stdout.read(), program


def test_it_goes_where_it_is_driven(drive):
    places = re.findall(r"^at (\S+) (\S+), (\S+) rad$", drive[0], re.MULTILINE)
    x, y, yaw = map(float, places[-1])
    assert 0.5 < x < 1.2, "0.8 m ahead, as far as the machine kept time"
    assert abs(y) < 0.1
    assert abs(yaw) < 0.1


def test_the_old_program_is_told_the_voltage(drive):
    assert re.search(r"battery\S*: 12\.3 V", drive[1], re.IGNORECASE), drive[1]
