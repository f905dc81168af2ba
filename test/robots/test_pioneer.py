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


@pytest.mark.parametrize(
    ("model", "m_per_unit", "half_axle_m"),
    [("p3dx", 0.000485, 0.18), ("p3at", 0.000465, 0.294), ("p3dx-sh", 0.001, 0.18), ("p3at-sh-lms200", 0.001, 0.294)],
)
def test_odometry_has_the_units_of_the_model_and_does_not_jump_where_it_wraps(model, m_per_unit, half_axle_m):
    robot, kept = Pioneer(), {}
    assert robot.is_named(packet(2, f"Name\0Pioneer\0{model}\0".encode()))
    for units in range(0, 70_000, 3000):
        vars(robot).update(kept)  # as over a reconnection
        heard = robot.decode_report(packet(SIP, STATE.pack(units % 0x8000, 0, 0, 100, 120, 129, 0, 0, 1, 0, 0)))
        assert heard.position[0] == pytest.approx(units * m_per_unit)
        kept, robot.x = {name: getattr(robot, name) for name in Pioneer.keeps}, 0
        assert heard.velocity.turn == pytest.approx(0.01 / half_axle_m)


@pytest.mark.parametrize(("theta", "units"), [(0, 0), (7, 0x8000)])
def test_a_robot_that_is_switched_on_anew_beyond_half_the_range_begins_at_0(theta, units):
    robot = Pioneer()
    robot.x = 0x7000  # kept over a reconnection
    reports = [packet(SIP, STATE.pack(x, 0, theta, 0, 0, 129, 0, 0, 1, 0, 0)) for x in (0, 100)]
    x, later = (robot.decode_report(each).position[0] / robot.m_per_unit for each in reports)
    assert (round(x), round(later)) == (units, units + 100)
