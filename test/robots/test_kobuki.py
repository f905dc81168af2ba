# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check kobuki`: bytes of the document, arcs, a bumper, wrapping counters, and its IMU."""

import struct

import pytest

from drone_bridge.robot_class import BodyVelocity, Refusal, Telemetry
from drone_bridge.robots.kobuki import CORE, CORE_DATA, INERTIA, M_PER_COUNT, REST, Kobuki, packed, parts_of

DOCK_IR = 3, bytes(3)


def report(ms=0, left=0, right=0, *, stops=(0, 0, 0), charger=0, tenths=150, heading=0):
    core = CORE_DATA.pack(ms, *stops, left, right, 0, charger, tenths)
    return packed((CORE, core), DOCK_IR, (INERTIA, struct.pack("<hh3x", heading, 4500)), *REST)


@pytest.mark.parametrize(
    ("velocity", "speed", "radius"),
    [
        (BodyVelocity(0.2), 200, 0),
        (BodyVelocity(-0.2), -200, 0),
        (BodyVelocity(turn=1.0), 115, 1),
        (BodyVelocity(turn=-1.0), -115, 1),
        (BodyVelocity(0.3, turn=0.5), 358, 600),
        (BodyVelocity(0.3, turn=-0.5), 358, -600),
        (BodyVelocity(-0.3, turn=0.5), -358, -600),
        (BodyVelocity(0.7, turn=0.5), 700, 1400),
        (BodyVelocity(0.5, turn=0.001), 500, 0),
        (BodyVelocity(), 0, 0),
    ],
)
def test_a_velocity_is_a_speed_of_the_outer_wheel_and_a_radius(velocity, speed, radius):
    packet = Kobuki().encode_command(velocity)
    assert packet[:5] == b"\xaa\x55\x06\x01\x04"
    assert struct.unpack("<hh", packet[5:9]) == pytest.approx((speed, radius), abs=1)
    (read,) = Kobuki().decode_command(packet)
    if abs(speed) < 700:
        assert (read.forward, read.turn) == pytest.approx((velocity.forward, velocity.turn), abs=0.01)


@pytest.mark.parametrize("stops", [(2, 0, 0), (0, 1, 0), (0, 0, 4)])
def test_a_bumper_a_dropped_wheel_and_a_cliff_stop_the_way_ahead_only(stops):
    robot = Kobuki()
    robot.decode_report(report(stops=stops))
    assert robot.encode_command(BodyVelocity(0.3)) == robot.encode_command(BodyVelocity())
    for velocity in (BodyVelocity(-0.3), BodyVelocity(turn=1.0)):
        assert robot.encode_command(velocity) == Kobuki().encode_command(velocity)
    robot.decode_report(report())
    assert robot.encode_command(BodyVelocity(0.3)) == Kobuki().encode_command(BodyVelocity(0.3))


LEFT, CENTER, RIGHT = (0.086, 0.235, 0.04), (0.25, 0.0, 0.04), (0.086, -0.235, 0.04)


@pytest.mark.parametrize(
    ("stops", "places"),
    [((0, 7, 0), ()), ((1, 0, 0), (RIGHT,)), ((2, 0, 4), (CENTER, LEFT)), ((0, 0, 7), (RIGHT, CENTER, LEFT))],
)
def test_bumpers_and_cliffs_are_points_of_the_costmap(stops, places):
    assert Kobuki().decode_report(report(stops=stops)).contacts == places
    wire = Kobuki().encode_report(Telemetry((0.0, 0.0, 0.0), 0.0, contacts=places))
    assert parts_of(wire)[CORE][2] == stops[0] | stops[2], "bumpers of the core data"


def test_counters_and_the_clock_wrap_and_the_gyro_has_its_own_heading():
    robot, counts = Kobuki(), round(0.1 / M_PER_COUNT)
    assert robot.decode_report(report(65_500, 65_000, 10)).velocity is None
    told = robot.decode_report(report(464, (65_000 + counts) % 65_536, 10 + counts, heading=-9000, charger=6))
    assert told.position == pytest.approx((0.1, 0.0, 0.0), abs=1e-3)
    assert (told.velocity.forward, told.yaw) == pytest.approx((0.2, 0.0), abs=1e-3)
    joints = told.extra["joint_states"]
    assert list(joints.name) == ["wheel_left_joint", "wheel_right_joint"]
    assert (*joints.position, *joints.velocity) == pytest.approx((0.1 / 0.035,) * 2 + (0.2 / 0.035,) * 2, abs=0.05)
    assert (told.imu_yaw, told.rates[2], told.voltage) == pytest.approx((-1.5708, 0.7854, 15.0), abs=1e-3)
    assert told.is_charging
    assert not robot.decode_report(report(charger=0)).is_charging


def test_it_answers_a_greeting_with_its_versions():
    ((question, test),) = Kobuki().handshake()
    (answer,) = Kobuki().decode_command(question)
    assert sorted(parts_of(answer)) == [10, 11, 19]
    assert test(answer)
    assert not test(report())
    assert Kobuki().decode_report(answer) is None


def test_an_led_keeps_the_other_one_and_the_supplies():
    client, robot = Kobuki(), Kobuki()
    packets = [client.all_requests[name].encoded(client) for name in ("led1_green", "led2_orange", "led1_dark")]
    assert [each[5:7] for each in packets] == [b"\xf0\x02", b"\xf0\x0e", b"\xf0\x0c"]
    assert [tuple(request.name for request in robot.decode_command(each)) for each in packets] == [
        ("led1_green", "led2_dark"),
        ("led1_green", "led2_orange"),
        ("led1_dark", "led2_orange"),
    ]


def test_it_answers_the_question_for_gains_that_the_maker_s_driver_repeats():
    (answer,) = Kobuki().decode_command(packed((14, b"\0")))
    assert struct.unpack("<B3I", parts_of(answer)[21]) == (0, 100_000, 100, 2000)


def test_each_part_has_the_size_that_the_maker_s_driver_demands():
    sizes = {number: len(data) for number, data in parts_of(Kobuki().encode_report(Telemetry())).items()}
    assert sizes == {1: 15, 3: 3, 4: 7, 5: 6, 6: 2, 13: 2 + 2 * 6, 16: 16}
    assert pytest.approx(0.035 * 0.002436916871363930187454) == M_PER_COUNT, "radius of a wheel, and angle of a tick"


def test_what_it_reports_is_read():
    end, client = Kobuki(), Kobuki()
    for step in range(3):
        told = Telemetry((0.01 * step, 0.0, 0.0), 0.0, voltage=14.5, is_charging=True, time_s=0.02 * step)
        read = client.decode_report(end.encode_report(told))
    assert (read.position[0], read.velocity.forward) == pytest.approx((0.02, 0.5), abs=1e-2)
    assert (read.voltage, read.charge) == pytest.approx((14.5, 0.05 + 0.95 * 1.3 / 3.3))
    assert read.is_charging


@pytest.mark.parametrize(
    ("number", "data", "done"),
    [(1, b"\x64\0\0\0", BodyVelocity(0.1)), (1, bytes(4), BodyVelocity()), (3, b"\0\1\5", None), (4, b"\0", None),
     (13, bytes(13), None), (7, b"\1", Refusal("part 7"))],
)  # fmt: skip
def test_each_part_of_the_document_is_executed_or_moves_nothing(number, data, done):
    assert Kobuki().decode_command(packed((number, data))) == (done,)
