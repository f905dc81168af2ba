# SPDX-License-Identifier: Apache-2.0
"""The emulated robot as its drivers meet it: a process, its output, its exit code, what it says on the wire."""

import socket
import sys

import pytest
from processes import TIMEOUT_S, when_listening
from robot_driver import RobotDriver

from drone_bridge.robot import codec
from drone_bridge.wire.events import RemoteProtocolError

# A driver whose test is held up is not to be taken for silent.
COMMAND = (
    *(sys.executable, "-m", "drone_bridge.robot.emulator", "--port", 0, "--discovery-port", 0),
    *("--silence-timeout", 0),
)
TRACKS = 0


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, "--verbose", *arguments))


@pytest.fixture
def connect(closing):
    return lambda emulator, name=None: closing(RobotDriver(emulator.port, name))


def test_the_motors_stop_when_their_driver_vanishes_or_is_silent_and_can_be_bound_again(emulate, connect):
    """A driver that hangs, or whose cable is pulled, closes no connection."""
    for name, silence_s, why in (
        ("alice", 0, "it has closed the connection"),
        ("bob", 3, "it has been silent for 3 s"),
    ):
        emulator = emulate("--silence-timeout", silence_s)
        driver = connect(emulator, name)
        driver.bind(TRACKS)
        driver.send(codec.SkidSteerUpdate(TRACKS, 500, 500))
        emulator.wait_for_line("motors 500 500")
        if name == "alice":
            driver.close()
        emulator.wait_for_line(f"motors stopped: {name} has vanished")
        emulator.wait_for_line(f"{name} is gone: {why}")
        connect(emulator, "carol").bind(TRACKS)


def test_it_answers_discovery(emulate):
    emulator = emulate("--name", "saber")
    port = int(emulator.wait_for_line(r"^discovery on 238\.160\.102\.2:(\d+) through 127\.0\.0\.1")[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for address in ("238.160.102.2", "127.0.0.1"):
            asking.sendto(b"find robots", (address, port))
            assert asking.recv(100) == b"saber"
    emulator.wait_for_line("answered 127.0.0.1:.* as saber")


@pytest.mark.parametrize(("fault", "error"), [("truncate@1", "closed inside"), ("garbage@1", "that is broken")])
def test_faults_break_the_first_connection_only(emulate, connect, fault, error):
    emulator = emulate("--fault", fault)
    driver = connect(emulator)
    driver.settle()
    driver.send(codec.KeepAlive(1))
    with pytest.raises(RemoteProtocolError, match=error):
        driver.next_event()
    again = connect(emulator)
    again.settle()
    again.settle(mark=1)


def test_a_robot_that_stalls_reads_at_once_what_was_sent_meanwhile(emulate, connect):
    """An adapter that handles one packet per read handles the first of it only."""
    emulator = emulate("--fault", "stall@1", "--stall", "3", "--one-packet-per-read")
    driver = connect(emulator)
    driver.settle()
    driver.send(codec.KeepAlive(1))
    emulator.wait_for_line("fault: stall")
    for number in (2, 3):
        driver.send(codec.KeepAlive(number))
    emulator.wait_for_line("goes on")
    assert [driver.wait_for(codec.KeepAlive).time_ms for _ in range(2)] == [1, 2]
    driver.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        driver.wait_for(codec.KeepAlive)
