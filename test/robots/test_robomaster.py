# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check robomaster`: signs, units, and both links."""

import math

import pytest

from drone_bridge.kind import Side
from drone_bridge.robot_class import BodyVelocity
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robots.robomaster import RoboMaster


def test_right_and_clockwise_are_positive():
    sent = RoboMaster().encode_command(BodyVelocity(0.5, 0.25, turn=-math.pi / 2))
    assert sent == b"chassis speed x 0.500 y -0.250 z 90.00;"


def test_a_velocity_is_also_acknowledged():
    velocity, answer = RoboMaster().decode_command(b"chassis speed x 0.5 y -0.25 z 90;")
    assert velocity.left == 0.25
    assert velocity.turn == pytest.approx(-math.pi / 2)
    assert answer == b"ok;"


def test_a_program_may_set_a_mode_and_ask_before_it_subscribes():
    robot = RoboMaster()
    answers = [robot.decode_command(text) for text in (b"robot mode free;", b"chassis speed ?;", b"quit;")]
    assert answers == [(b"ok;",), (b"error;",), (BodyVelocity(), b"ok;")]
    for text in (b"1 2;", b";"):
        with pytest.raises(ValueError, match="unknown command"):
            robot.decode_command(text)


def test_its_chassis_leads_whether_it_has_a_gimbal_or_not():
    mode, test = list(RoboMaster().handshake())[-1]
    assert mode == b"robot mode chassis_lead;"
    assert test(b"error;")


@pytest.mark.parametrize(
    "text", [b"chassis push position 1 -2 ; attitude 0 0 -90 ;\n", b"position 1 -2 0;attitude 0 0 -90;"]
)
def test_the_pushed_state_is_in_rep_103(text):
    robot = RobotClassConnection(RoboMaster, Side.OPERATOR)
    robot.receive_data(text, "state")
    *_, told = (event.meaning for event in robot.events() if event.meaning)
    assert told.position == (1.0, 2.0, 0.0)
    assert told.yaw == pytest.approx(math.pi / 2)


def test_what_is_no_state_answers():
    assert RoboMaster().decode_report(b"ok;").is_success
    assert RoboMaster().decode_report(b"error;").reason == "error"
