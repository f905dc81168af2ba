# SPDX-License-Identifier: Apache-2.0
"""Faults of a robot's class in its emulator."""

import argparse
import contextlib
import re
import socket

import pytest
from ros_session import repeating

from drone_bridge.net.connector import Cancellation
from drone_bridge.robot_class import BodyVelocity, Delimited, Robot, Telemetry, Udp
from drone_bridge.robot_class.vehicle.emulator import emulate


class Sound(Robot):
    """Robot with one number in each packet."""

    name, control = "sound", Udp(1, Delimited(b"\n"))

    def encode_command(self, velocity):
        return b"%g\n" % velocity.forward

    def decode_command(self, packet):
        return BodyVelocity(float(packet))

    def decode_report(self, packet):
        return Telemetry(voltage=float(packet))

    def encode_report(self, telemetry):
        return b"12\n"


def later(*_):
    raise RuntimeError("a fault")


def misspelt(self, *_):
    return self.battery


def text(*_):
    return "12"


FAULTS = [(name, fault) for name in ("decode_command", "encode_report") for fault in (later, text)]


@pytest.mark.parametrize(("name", "method"), [("encode_report", misspelt), *FAULTS])
def test_a_fault_of_the_class_ends_its_emulator_with_the_method_s_line(name, method, free_port, capsys):
    robot = type("Faulty", (Sound,), {"name": "faulty", name: method})
    options = argparse.Namespace(host="127.0.0.1", port=free_port, trajectory="", duration=60.0)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        stack.enter_context(repeating(lambda _: client.sendto(b"0\n", ("127.0.0.1", free_port)), period_s=0.05))
        assert emulate(robot, options, Cancellation(), stack) == 1
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert re.fullmatch(r"faulty: .*test_emulator_faults.py:\d+.*\n", said.err), "one sentence, with the line"
    assert (f"Faulty.{name}() must return" if method is text else f", in {method.__name__}: ") in said.err
