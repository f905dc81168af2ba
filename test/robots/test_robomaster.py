# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check robomaster`: signs, units, and both links."""

import math

import pytest
from verbs import STAND, by_robot, verbs

from drone_bridge.kind import Side
from drone_bridge.robot_class import BodyVelocity, Move, Refusal, Telemetry
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robots.robomaster import BATTERY, RoboMaster


def test_right_and_clockwise_are_positive():
    robot = RoboMaster()
    sent = [robot.encode_command(BodyVelocity(0.5, 0.25, turn=-math.pi / 2)) for _ in range(BATTERY + 1)]
    assert {*sent[1:-1]} == {b"chassis speed x 0.500 y -0.250 z 90.00;"}
    assert sent[0] == sent[-1] == sent[1] + b"robot battery ?;"
    assert robot.decode_report(b"87;").charge == 0.87
    assert robot.last_words() == (b"chassis speed x 0.000 y -0.000 z -0.00;", b"quit;")


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


#: By the maker's document: each command that moves, stops or disables, and what its end does.
VERBS = {
    "quit": [STAND, b"ok;"], "chassis speed x 1": [BodyVelocity(1.0), b"ok;"],
    "chassis speed x 0 y 0 z 0": [STAND, b"ok;"], "chassis wheel w1 0 w2 0 w3 0 w4 0": [STAND, b"ok;"],
    "chassis move x 1": Move(1.0, speed=0.5, turn_speed=0.523599), "robot mode chassis_lead": b"ok;",
    "robotic_gripper open 1": "open_gripper", "robotic_gripper open leve 4": "open_gripper",
    "robotic_gripper close": "close_gripper",
    **{text: Refusal(" ".join(text.split()[:2]), answer=b"error;") for text in
       ("chassis speed x 4", "chassis wheel w1 9", "chassis move x 9", "chassis move x 1 vxy 0",
        "robot mode gimbal_lead", "gimbal speed p 1 y 1", "gimbal move p 10", "gimbal moveto p 10", "gimbal suspend",
        "gimbal resume", "gimbal recenter", "blaster fire", "pwm value 1 50", "servo stop", "servo angle id 1 angle 20",
        "servo speed id 1 speed 20", "robotic_arm stop", "robotic_arm move x 20 y 20", "robotic_arm moveto x 20 y 20",
        "robotic_arm recenter")},
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(sent, meaning):
    assert by_robot(RoboMaster(), f"{sent};".encode()) == meaning


def test_the_maker_s_client_is_answered_before_it_drives():
    robot = RoboMaster()
    robot.encode_report(Telemetry((0.0, 0.0, 0.0), 0.0, BodyVelocity(0.1, -0.2, turn=-0.5), charge=0.87))
    asked = {"version": b"version 00.00.00.00;", "robot battery ?": b"87;", "gimbal attitude ?": b"error;",
             "chassis speed ?": b"0.100 0.200 28.648 -38 76 38 0;"}  # fmt: skip
    assert {text: robot.decode_command(f"{text};".encode())[0] for text in asked} == asked
    for text in ("speed x 0.1 y 0.2 z 28.648", "wheel w1 -38 w2 76 w3 38 w4 0"):
        driven = robot.decode_command(f"chassis {text};".encode())[0]
        assert (driven.forward, driven.left, driven.turn) == pytest.approx((0.1, -0.2, -0.5), abs=0.01)
