# SPDX-License-Identifier: Apache-2.0
"""Two machines: the bridge beside the vehicle, who commands it on another one, and a cable that fails."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from networks import two_machines
from processes import executable
from ros_session import wait_until

CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
PROBE = Path(__file__).parent / "support" / "reach_probe.py"
COMMAND_TIMEOUT_S = 0.5
SCHEDULING_S = 1.5  # on a machine that others keep busy

MOTORS = re.compile(r"motors (\S+) (\S+)")

pytestmark = pytest.mark.skipif(
    os.environ.get("ROS_DISTRO") == "humble" or "fastrtps" not in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps"),
    reason="static peers came with Iron, and the profile is for Fast DDS",
)


class Robot:
    """An emulated robot and its bridge on one machine, and who drives it on another."""

    def __init__(self, start_child, ours, theirs, port):
        def start(machine, *words, **environment):
            reach = {"FASTDDS_DEFAULT_PROFILES_FILE": str(CONFIG / "fastdds.xml"), **environment}
            return start_child(*machine.command(*words), env={"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", **reach})

        self.emulator = start(ours, executable("robot_emulator"), "--port", port, "--no-discovery", "--verbose")
        self.emulator.wait_for_line("listening on")
        parameters = ("-p", f"port:={port}", "-p", f"command_timeout:={COMMAND_TIMEOUT_S}")
        self.bridge = start(ours, executable("robot_bridge"), "--ros-args", *parameters)
        # Who drives knows the address: no multicast is needed for that.
        peers = {"FASTDDS_DEFAULT_PROFILES_FILE": "", "ROS_STATIC_PEERS": ours.address}
        self.driver = start(theirs, sys.executable, PROBE, "drive", **peers)

    def is_moving(self):
        """Return whether the motors have a speed, by what the robot has printed last about them."""
        changes = MOTORS.findall(self.emulator.output)
        return bool(changes) and {float(speed) for speed in changes[-1]} != {0.0}


def cut_and_mend(start_child, free_port, prepare=lambda machine: None):
    """Drive over the cable, pull it out, and put it in again; return how long the robot went on moving, s."""
    with two_machines() as (ours, theirs):
        for machine in (ours, theirs):
            prepare(machine)
        robot = Robot(start_child, ours, theirs, free_port)
        wait_until(robot.is_moving, "the robot to be driven")
        ours.cable("down")
        cut_s = time.monotonic()
        wait_until(lambda: not robot.is_moving(), "the robot to stop")
        stopped_after_s = time.monotonic() - cut_s
        assert robot.bridge.is_running
        ours.cable("up")
        wait_until(robot.is_moving, "the robot to be driven again")
        # It keeps what the processes have open from outliving the machines.
        for child in (robot.driver, robot.bridge, robot.emulator):
            child.end()
        return stopped_after_s


def test_a_robot_stops_within_the_command_timeout_of_a_cut_and_goes_on_after_it(start_child, domain, free_port):
    assert cut_and_mend(start_child, free_port) < COMMAND_TIMEOUT_S + SCHEDULING_S


def test_so_it_does_over_a_link_that_loses_and_delays(start_child, domain, free_port):
    """2 % loss, 20 ms, 20 Mbit/s each way: commands that come are fresh enough, as the robot is driven at all."""
    assert cut_and_mend(start_child, free_port, lambda machine: machine.lose()) < COMMAND_TIMEOUT_S + SCHEDULING_S
