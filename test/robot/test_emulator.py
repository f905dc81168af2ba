# SPDX-License-Identifier: Apache-2.0
"""Process tests of the emulated robot: its output and its packets."""

import socket
import sys

import pytest
from processes import TIMEOUT_S, when_listening
from robot_driver import RobotDriver

from drone_bridge.robot import codec

COMMAND = (sys.executable, "-m", "drone_bridge.robot.emulator", "--port", 0, "--discovery-port", 0)
TRACKS = 0


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, *arguments))


def test_the_motors_of_a_silent_driver_stop_and_can_be_bound_again(emulate, closing):
    """A driver that hangs, or is unplugged, does not close its connection."""
    emulator = emulate("--silence-timeout", "0.5", "--verbose")
    for name in ("alice", "bob"):
        update = codec.SkidSteerUpdate(TRACKS, 500, 500)
        closing(RobotDriver(emulator.port)).send(codec.RegisterDriver(name), codec.BindSubsystem(TRACKS), update)
        emulator.wait_for_line(rf"\[{name}\] bound subsystem 0")
        emulator.wait_for_line("motors 500 500")
        emulator.wait_for_line(f"motors stopped: {name} has disconnected")
        emulator.wait_for_line(f"{name} disconnected: silent")


def test_the_emulator_answers_discovery(emulate):
    emulator = emulate("--name", "saber")
    port = int(emulator.wait_for_line(r"^discovery on 238\.160\.102\.2:(\d+) through 127\.0\.0\.1")[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for address in ("238.160.102.2", "127.0.0.1"):
            asking.sendto(b"find robots", (address, port))
            assert asking.recv(100) == b"saber"
    emulator.wait_for_line("answered 127.0.0.1:.* as saber")
