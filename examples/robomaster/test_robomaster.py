# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check robomaster`: signs, units, and both links."""

import math

import pytest
from robomaster import RoboMaster

from drone_bridge.robot_class import BodyVelocity


def test_right_and_clockwise_are_positive():
    sent = RoboMaster().encode_command(BodyVelocity(0.5, 0.25, turn=-math.pi / 2))
    assert sent == b"chassis speed x 0.500 y -0.250 z 90.00;"


def test_a_velocity_is_also_acknowledged():
    velocity, answer = RoboMaster().decode_command(b"chassis speed x 0.5 y -0.25 z 90;")
    assert velocity.left == 0.25
    assert velocity.turn == pytest.approx(-math.pi / 2)
    assert answer == b"ok;"


@pytest.mark.parametrize(
    "text", [b"chassis push position 1 -2 ; attitude 0 0 -90 ;\n", b"position 1 -2 0;attitude 0 0 -90;"]
)
def test_the_pushed_state_is_in_rep_103(text):
    told = RoboMaster().decode_state(text)
    assert told.position == (1.0, 2.0, 0.0)
    assert told.yaw == pytest.approx(math.pi / 2)


def test_other_pushes_are_refused():
    with pytest.raises(ValueError, match="armor"):
        RoboMaster().decode_state(b"armor push event;")
