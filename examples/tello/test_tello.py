# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check tello`: signs and units."""

from tello import Tello

from drone_bridge.robot_class import BodyVelocity


def test_right_and_clockwise_are_positive():
    assert Tello().encode_command(BodyVelocity(0.5, 0.25, -0.1, turn=-1.6)) == b"rc -25 50 -10 100"


def test_state_is_read_as_rep_103():
    state = b"pitch:0;roll:0;yaw:-90;vgx:5;vgy:-2;vgz:3;templ:60;temph:62;tof:100;h:70;bat:87;\r\n"
    told = Tello().decode_state(state)
    assert told.velocity == BodyVelocity(0.5, 0.2, -0.3)
    assert (told.height, told.charge, round(told.yaw, 3)) == (0.7, 0.87, 1.571)
