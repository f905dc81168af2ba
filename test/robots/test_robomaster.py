# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check robomaster`: signs, units, and both links."""

import math

import pytest

from drone_bridge.kind import Side
from drone_bridge.robot_class import BodyVelocity, Telemetry
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robots.robomaster import RoboMaster


def test_right_and_clockwise_are_positive():
    sent = RoboMaster().encode_command(BodyVelocity(0.5, 0.25, turn=-math.pi / 2))
    assert sent == b"chassis speed x 0.500 y -0.250 z 90.00;"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("speed x 0.5 y -0.25 z 90", (0.5, 0.25, -math.pi / 2)), ("wheel w1 60 w2 60 w3 60 w4 60", (math.pi / 10, 0, 0)),
     ("wheel w4 60 w3 -60 w2 -60 w1 60", (0, math.pi / 10, 0)), ("wheel w1 6 w2 -6 w3 6 w4 -6", (0, 0, math.pi / 20))],
)  # fmt: skip
def test_a_velocity_is_also_acknowledged(text, expected):
    """Wheels of 10 cm, right ones 1 and 3, which turn it by 1 rad in 0.2 m; rollers as in a published simulation."""
    velocity, answer = RoboMaster().decode_command(f"chassis {text};".encode())
    assert (velocity.forward, velocity.left, velocity.turn) == pytest.approx(expected)
    assert answer == b"ok;"


def test_a_program_may_set_a_mode_and_ask_before_it_subscribes():
    robot = RoboMaster()
    answers = [robot.decode_command(text) for text in (b"robot mode free;", b"chassis status ?;", b"quit;")]
    assert answers == [(b"ok;",), (b"error;",), (BodyVelocity(), b"ok;")]
    robot.encode_report(Telemetry((1.0, 2.0, 0.0), math.pi / 2, BodyVelocity(0.1)))
    answers = [
        robot.decode_command(b"%s ?;" % each)[0] for each in (b"robot mode", b"chassis position", b"chassis status")
    ]
    assert answers == [b"free;", b"1.000 -2.000 -90.000;", b"0 0 0 0 0 0 0 0 0 0 0;"]
    for text in (b"1 2;", b";"):
        with pytest.raises(ValueError, match="unknown command"):
            robot.decode_command(text)


@pytest.mark.parametrize(
    ("commands", "position", "attitude", "status"),
    [(["position on attitude on afreq 10", "position off"], 0, 10, 0), (["position on", "attitude on"], 5, 5, 0),
     (["freq 10", "position pfreq 1", "pfreq 1", "status off"], 1, 10, 0), (["freq 5", "pfreq 50"], 5, 5, 5)],
)  # fmt: skip
def test_it_pushes_what_is_on_as_often_as_wanted(commands, position, attitude, status):
    robot = RoboMaster()
    for each in commands:
        robot.decode_command(f"chassis push {each};".encode())
    pushed = b"".join(robot.encode_report(Telemetry((1.0, 2.0, 0.0), 0.5)) or b"" for _ in range(10))
    assert [pushed.count(name) for name in (b"position", b"attitude", b"status")] == [position, attitude, status]


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


def test_a_part_of_the_pose_is_unknown_until_it_is_pushed():
    place, heading = (RoboMaster().decode_report(each) for each in (b"position 1 -2 0;", b"attitude 0 0 -90;"))
    assert (place.yaw, place.position, heading.position) == (None, None, None), "it would have the yaw 0"


def test_what_is_no_state_answers():
    assert RoboMaster().decode_report(b"ok;").is_success
    assert RoboMaster().decode_report(b"error;").reason == "error"
