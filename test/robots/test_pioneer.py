# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check pioneer`: signs, units, bytes of the manual, and wrapping of positions."""

import math

import pytest

from drone_bridge.robot_class import BodyVelocity
from drone_bridge.robots.pioneer import RVEL, SIP, STATE, VEL, Pioneer, command, packet


def test_forward_and_left_are_positive():
    assert Pioneer().encode_command(BodyVelocity(0.3, turn=-math.pi / 6)) == command(VEL, 300) + command(RVEL, -30)


def test_packets_are_those_of_the_manual():
    assert packet(0) == bytes.fromhex("fafb03000000")
    assert command(4, 1) == bytes.fromhex("fafb06043b0100053b")


def test_odometry_does_not_jump_where_the_wire_wraps():
    robot = Pioneer()
    for units in range(0, 70_000, 3000):
        heard = robot.decode_report(packet(SIP, STATE.pack(units % 0x8000, 0, 0, 100, 100, 129, 0, 0, 1, 0, 0)))
        assert heard.position[0] == pytest.approx(units * 0.000485)
