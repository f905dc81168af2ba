# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check pioneer`: signs, units, bytes of the manual, and wrapping of positions."""

import math
import struct

import pytest
from verbs import STAND, by_robot, verbs

from drone_bridge.robot_class import BodyVelocity, Move, Refusal, Telemetry
from drone_bridge.robots.pioneer import RVEL, SIP, STATE, STOP, VEL, Pioneer, command, packet


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


def served(yaw=0.0):
    """Return the robot's end after OPEN and a report, with its motors on."""
    robot = Pioneer()
    for data in (*map(packet, (0, 1, 2, 1)), command(4, 1)):
        robot.decode_command(data)
    robot.encode_report(Telemetry((0.0, 0.0, 0.0), yaw))
    return robot


SET, RAD = {"is_setpoint": True, "turn_speed": math.radians(100)}, math.radians
WAY = {"speed": 0.75, "is_setpoint": True}
#: By the maker's manual: each command that moves, limits, stops or disables, and what its end does.
VERBS = {
    packet(0): [], packet(2): STAND, command(4, 0): STAND, command(4, 1): [], command(5, 300): Refusal("SETA"),
    packet(7): Refusal("SETO"), command(8, 500): Move(0.5, **WAY), command(8, -500): Move(-0.5, **WAY),
    command(9, 30): BodyVelocity(turn=RAD(30)), command(VEL, 300): BodyVelocity(0.3),
    command(12, 270): Move(heading=RAD(270), **SET), command(13, -30): Move(heading=RAD(60), **SET),
    command(22, 30): Move(heading=RAD(120), **SET), command(RVEL, -30): BodyVelocity(turn=RAD(-30)),
    command(23, 30): Refusal("SETRA"), packet(29): STAND, command(28, 1): [], command(32, 0x0A0A): BodyVelocity(0.2),
    command(32, 0x0500): BodyVelocity(0.05, turn=-0.1 / 0.36), command(32, -0x0506): BodyVelocity(-0.12),
    command(33, 1): Refusal("GRIPPER"), command(44, 3): Refusal("BUMPSTALL"), command(47, 1): Refusal("JOYDRIVE"),
    packet(55): STAND, command(68, 1): Refusal("CHARGE"), command(75, 1): Refusal("number 75"),
    command(110, 1): Refusal("LATVEL"), packet(253): STAND, packet(255): STAND,
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(sent, meaning):
    assert by_robot(served(math.pi / 2), sent) == meaning


def test_it_is_synchronized_in_sequence_also_after_the_end_of_an_earlier_program():
    robot = Pioneer()
    assert robot.decode_command(packet(2)) == STAND, "no answer to CLOSE, by which some programs begin"
    assert [robot.decode_command(packet(kind))[3] for kind in (0, 0, 1, 2)] == [0, 0, 1, 2]
    assert [robot.decode_command(packet(kind)) for kind in (0, 1)] == [None, None]


def test_its_state_is_whole_and_has_the_flags_that_programs_wait_for():
    robot, flags = served(), []
    for data in (command(28, 1), command(4, 0), command(28, 0)):
        robot.decode_command(data)
        report = robot.encode_report(Telemetry((0.0, 0.0, 0.0), 0.0, BodyVelocity(turn=1.0), 12.4))
        flags.append(struct.unpack_from("<H", report, 19)[0])
    assert flags == [3, 2, 0]
    assert struct.unpack("<HBh", report[-7:-2]) == (124, 0, 573), "0.1 V, charger, and 0.1 degrees/s at its end"


def test_without_power_it_stands_and_says_so_until_it_is_enabled():
    robot = served()
    assert [robot.decode_command(data) for data in (command(VEL, 300), command(4, 0))] == [BodyVelocity(0.3), STAND]
    for name, number in {"MOVE": 8, "ROTATE": 9, "VEL": 11, "HEAD": 12, "DHEAD": 13, "VEL2": 32}.items():
        assert robot.decode_command(command(number, 500)) == (STAND, Refusal(name, "its motors are off"))
    assert Pioneer().decode_report(robot.encode_report(Telemetry((0.0, 0.0, 0.0), 0.0))).disobeys
    robot.decode_command(command(4, 1))
    assert robot.decode_command(command(RVEL, 0)) == STAND, "it does not go on from before"
    assert robot.decode_command(command(VEL, 200)) == BodyVelocity(0.2)


def test_a_heading_is_kept_beside_a_speed_within_the_limits_of_its_program():
    robot, kept = served(), {"heading": RAD(90), "turn_speed": RAD(20), "is_setpoint": True}
    for kind, value in ((6, 200), (10, 20)):
        assert robot.decode_command(command(kind, value)) is None
    sent = command(VEL, 300), command(12, 90), command(VEL, 0), command(VEL, -100), command(RVEL, 90), packet(STOP)
    assert [robot.decode_command(data) for data in sent] == [
        BodyVelocity(0.2), Move(cruise=0.2, **kept), Move(**kept), Move(cruise=-0.1, **kept),
        BodyVelocity(-0.1, turn=RAD(20)), STAND,
    ]  # fmt: skip
    assert robot.decode_command(command(8, 500)).speed == 0.2
