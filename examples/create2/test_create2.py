# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check create2`: signs, units, bytes of the document, modes, and wrapping encoders."""

import math

import pytest
from create2 import AXLE_M, M_PER_COUNT, NUMBERS, SENSORS, Create2, is_safe

from drone_bridge.robot_class import BodyVelocity, Telemetry


def frame(mode, right, left):
    values = (0, 16_000, 2000, 2696, mode, 0, 0, right % 0x10000, left % 0x10000)
    content = bytearray(SENSORS.pack(*values))
    for at, number in zip((0, 2, 5, 8, 11, 13, 16, 19, 22), NUMBERS, strict=True):
        content[at] = number
    begun = bytes([19, len(content)]) + content
    return begun + bytes([-sum(begun) & 255])


def test_commands_are_those_of_the_document():
    robot = Create2()
    assert robot.encode_command(BodyVelocity(0.2)) == bytes([145, 0, 200, 0, 200])
    assert robot.encode_command(BodyVelocity(turn=-1.0)) == bytes([145, 255, 256 - 118, 0, 118]), "right is backwards"
    assert robot.encode_command(BodyVelocity(0.5, turn=4.0))[1:3] == b"\x01\xf4", "a wheel's limit"


def test_a_turn_is_odometry_and_the_wire_wraps():
    robot, metres = Create2(), math.pi / 2 * AXLE_M / 2
    counts = round(metres / M_PER_COUNT)
    robot.decode_report(frame(2, 65_000, 500))
    told = robot.decode_report(frame(2, 65_000 + counts, 500 - counts))
    assert told.yaw == pytest.approx(math.pi / 2, abs=0.01)
    told = robot.decode_report(frame(2, 65_000 + counts + 1000, 500 - counts + 1000))
    assert told.position == pytest.approx((0.0, 1000 * M_PER_COUNT, 0.0), abs=0.01)
    assert (told.voltage, round(told.charge, 2)) == (16.0, 0.74)


@pytest.mark.parametrize(("mode", "expected"), [(1, False), (2, True), (3, True)])
def test_on_its_charger_it_is_not_greeted(mode, expected):
    assert is_safe(frame(mode, 0, 0)) is expected


def test_passive_it_ignores_velocities():
    robot = Create2()
    robot.decode_command(bytes([128]))
    assert robot.decode_command(bytes([145, 0, 200, 0, 200])) is None
    robot.decode_command(bytes([131]))
    assert robot.decode_command(bytes([145, 0, 200, 0, 200])) == BodyVelocity(0.2)


def test_what_it_reports_is_read():
    end, client = Create2(), Create2()
    end.decode_command(bytes([148, 0]))
    for x in (0.0, 0.3):
        told = client.decode_report(end.encode_report(Telemetry((x, 0.0, 0.0), 0.0, BodyVelocity(0.3), 14.4, 0.5)))
    assert told.position[0] == pytest.approx(0.3, abs=0.001)
    assert told.velocity.forward == pytest.approx(0.3)
