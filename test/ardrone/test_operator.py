# SPDX-License-Identifier: Apache-2.0
"""The scripted operator with the emulated drone."""

import pytest
from ports import free_ports
from processes import Process

NAMES = ("--port", "--navdata-port", "--control-port")


@pytest.fixture
def ports():
    return [word for pair in zip(NAMES, map(str, free_ports(3)), strict=True) for word in pair]


def emulator(ports, *options):
    return Process.module("drone_bridge.ardrone.vehicle.emulator", *ports, "--video-port", "0", *options)


def operator(ports, plan, *options):
    return Process.module("drone_bridge.ardrone.vehicle.operator", *ports, "--plan", plan, *options)


def test_it_refuses_to_take_off_in_the_air(ports):
    with emulator(ports, "--in-the-air", "--bootstrapped") as drone:
        drone.wait_for_line("listening on")
        with operator(ports, "1s forward 0.5") as program:
            assert program.wait() == 2
            program.wait_for_line("takeoff was refused: The drone is flying")
        assert not drone.count_lines("landing")
