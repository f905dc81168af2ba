# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check hoverboard`: bytes that its users have published, and its timeout."""

import math
import struct

import pytest

from drone_bridge.robot_class import BodyVelocity, Telemetry
from drone_bridge.robot_class.self_check import faults
from drone_bridge.robots.hoverboard import COMMAND, Hoverboard, is_valid, packed

RPM = math.tau * 0.0825 / 60
REPORT = struct.Struct("<HhhhhhhHH")


def test_published_bytes_are_read():
    """See issues 97, 58 (of motors that are wired the other way round) and 346 (without its checksum)."""
    sent, heard = b"\xcd\xab\0\0\x5a\0\x97\xab", REPORT.pack(0xABCD, 0, 150, 118, -116, 3831, 355, 0, 23349)
    assert (packed(COMMAND, 0, 90), Hoverboard().decode_command(sent)) == (sent, BodyVelocity(90 * RPM))
    told = Hoverboard().decode_report(heard)
    told = told.velocity.forward, told.voltage, told.extra["board_temperature"].data
    assert (is_valid(heard), told) == (True, pytest.approx((-117 * RPM, 38.31, 35.5)))
    told = Hoverboard().decode_report(REPORT.pack(0xABCD, 0, 100, -27, 28, 3980, 243, 0, 0))
    assert (told.velocity.forward, told.velocity.turn) == pytest.approx((27.5 * RPM, -2 * RPM / 0.32))


@pytest.mark.parametrize(("steer", "speed", "turn"), [(10, 0, 10), (-8, 0, -8), (0, 5, 0), (24, 0, 0)])
def test_a_turn_that_it_cannot_measure_is_taken_as_commanded(steer, speed, turn):
    """The wheels of a board at 5 rpm each turn by 10 rpm. One that should be faster, and reads 0, stands."""
    told = Hoverboard().decode_report(REPORT.pack(0xABCD, steer, speed, 0, 0, 3831, 355, 0, 0)).velocity
    assert (told.forward, told.turn) == pytest.approx((speed * RPM, -turn * RPM / 0.32))


def test_commands_are_limited_and_echoed_until_the_timeout():
    end = Hoverboard()
    assert list(faults(Hoverboard)) == []
    assert end.decode_command(packed(COMMAND, 0, 1500)) == BodyVelocity(1000 * RPM)
    echoes = [struct.unpack_from("<hh", end.encode_report(Telemetry()), 2) for _ in range(82)]
    assert (echoes[0], echoes[79], echoes[80]) == ((0, 1000), (0, 1000), (0, 0))
