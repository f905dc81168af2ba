# SPDX-License-Identifier: Apache-2.0
"""Reports of robots on serial lines with one wrong bit: none is read."""

import pytest
from own_robots import Create2, Kobuki, Pioneer

from drone_bridge.kind import Side
from drone_bridge.robot_class.connection import SAMPLE, RobotClassConnection, StatePacket
from drone_bridge.robots.create2 import NUMBERS
from drone_bridge.robots.hoverboard import Hoverboard


def read(robot, data):
    connection = RobotClassConnection(robot, Side.OPERATOR, is_line=True)
    connection.receive_data(data)
    return [each for each in connection.events() if isinstance(each, StatePacket)]


@pytest.mark.parametrize("robot", [Create2, Hoverboard, Kobuki, Pioneer])
def test_a_report_with_a_wrong_bit_is_not_read(robot):
    end = robot()
    end.is_open, end.is_streaming, end.streamed = True, True, bytes(NUMBERS)
    report = end.encode_report(SAMPLE)
    assert read(robot, report)
    for number in range(8 * len(report)):
        wrong = bytearray(report)
        wrong[number // 8] ^= 1 << number % 8
        assert not read(robot, bytes(wrong)), f"bit {number % 8} of byte {number // 8}"
