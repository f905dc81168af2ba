# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check create2`: signs, units, bytes of the document, modes, and wrapping encoders."""

import math

import pytest
from verbs import STAND, by_robot, verbs

from drone_bridge.robot_class import BodyVelocity, Refusal, Telemetry
from drone_bridge.robots.create2 import AXLE_M, M_PER_COUNT, NEEDED, NUMBERS, WIDE, Create2, is_safe, opcodes


def frame(mode, right, left, numbers=NUMBERS, charging=0, bumpers=0, cliffs=()):
    values = (bumpers, 16_000, 2000, 2696, mode, 0, 0, right % 0x10000, left % 0x10000, charging)
    packets = zip(numbers, (*values, *(int(each in cliffs) for each in (9, 10, 11, 12)), 0), strict=False)
    content = b"".join(bytes([number]) + value.to_bytes(1 + (number in WIDE), "big") for number, value in packets)
    begun = bytes([19, len(content)]) + content
    return begun + bytes([-sum(begun) & 255])


def test_commands_are_those_of_the_document():
    robot = Create2()
    assert robot.encode_command(BodyVelocity(0.2)) == bytes([145, 0, 200, 0, 200])
    assert robot.encode_command(BodyVelocity(turn=-1.0)) == bytes([145, 255, 256 - 118, 0, 118]), "right is backwards"
    assert robot.encode_command(BodyVelocity(0.5, turn=4.0))[1:3] == b"\x01\xf4", "a wheel's limit"


@pytest.mark.parametrize("bumpers", [1, 2, 4, 8])
def test_a_bumper_and_a_dropped_wheel_stop_the_way_ahead_only(bumpers):
    robot = Create2()
    robot.decode_report(frame(2, 0, 0, bumpers=bumpers))
    assert robot.encode_command(BodyVelocity(0.2)) == bytes([145, 0, 0, 0, 0])
    assert robot.encode_command(BodyVelocity(-0.2)) == bytes([145, 255, 56, 255, 56])
    assert robot.encode_command(BodyVelocity(0.2, turn=-1.0)) == bytes([145, 255, 256 - 118, 0, 118])
    robot.decode_report(frame(2, 0, 0))
    assert robot.encode_command(BodyVelocity(0.2)) == bytes([145, 0, 200, 0, 200])


LEFT, FRONT, RIGHT = (0.086, 0.235, 0.04), (0.25, 0.0, 0.04), (0.086, -0.235, 0.04)


@pytest.mark.parametrize(
    ("bumpers", "cliffs", "places"),
    [
        (12, (), set()),
        (1, (), {RIGHT}),
        (2, (), {LEFT}),
        (3, (), {FRONT}),
        (0, (9,), {LEFT}),
        (0, (10,), {FRONT}),
        (2, (11, 12), {LEFT, FRONT, RIGHT}),
    ],
)
def test_bumpers_and_cliffs_are_points_of_the_costmap(bumpers, cliffs, places):
    told = Create2().decode_report(frame(2, 0, 0, bumpers=bumpers, cliffs=cliffs))
    assert (len(told.contacts), {*told.contacts}) == (len(places), places)
    end = Create2()
    end.decode_command(bytes([148, 1, 7]))
    if not cliffs:
        assert end.encode_report(Telemetry((0.0, 0.0, 0.0), 0.0, contacts=told.contacts))[3] == bumpers & 3


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


@pytest.mark.parametrize("request_", [b"\x8f", b"\x87"])
def test_to_dock_or_clean_it_stops_and_leaves_safe_mode(request_):
    robot = Create2()
    robot.decode_command(bytes([131]))
    name = {b"\x8f": "dock", b"\x87": "clean"}[request_]
    assert robot.all_requests[name].encoded(robot) == request_
    assert robot.decode_command(request_) == (BodyVelocity(), robot.all_requests[name])
    assert robot.decode_command(bytes([142, 35])) == b"\x01", "passive"
    assert robot.decode_command(bytes([145, 0, 200, 0, 200])) == Refusal("Drive Direct", "its mode is passive")


@pytest.mark.parametrize(("charging", "is_charging"), [(0, False), (1, True), (2, True), (3, True), (4, False)])
def test_on_its_charger_it_says_so(charging, is_charging):
    report = Create2().decode_report(frame(1, 0, 0, charging=charging))
    assert report.is_charging is is_charging
    assert ("lifted" in report.disobeys) is (charging == 0)


NOISE = *(frame(1, 0, 0, numbers) for numbers in ((8, *NUMBERS[1:]), NEEDED[:-1], (*NUMBERS, 8))), frame(1, 0, 0)[:-1]


@pytest.mark.parametrize("noise", NOISE)
def test_noise_that_passes_the_checksum_reports_nothing(noise):
    """It would hold the robot, as one that is not in safe mode."""
    with pytest.raises(ValueError, match="sensor packets"):
        Create2().decode_report(noise)


def test_a_stream_without_its_charger_is_read():
    assert is_safe(frame(2, 0, 0, NEEDED))
    assert Create2().decode_report(frame(2, 0, 0, NEEDED)).is_charging is False


def test_passive_it_ignores_velocities():
    robot = Create2()
    robot.decode_command(bytes([128]))
    for code, name in ((137, "Drive"), (145, "Drive Direct"), (146, "Drive PWM")):
        assert robot.decode_command(bytes([code, 0, 200, 0, 200])) == Refusal(name, "its mode is passive")
    assert robot.decode_command(bytes([145, 0, 0, 0, 0])) is None, "it stands"
    robot.decode_command(bytes([131]))
    assert robot.decode_command(bytes([145, 0, 200, 0, 200])) == BodyVelocity(0.2)


def test_what_it_reports_is_read():
    end, client = Create2(), Create2()
    end.decode_command(bytes([148, len(NUMBERS), *NUMBERS]))
    for x in (0.0, 0.3):
        report = Telemetry((x, 0.0, 0.0), 0.0, BodyVelocity(0.3), 14.4, 0.5, is_charging=True)
        told = client.decode_report(end.encode_report(report))
    assert told.is_charging
    assert told.position[0] == pytest.approx(0.3, abs=0.001)
    assert told.velocity.forward == pytest.approx(0.3)
    joints = told.extra["joint_states"]
    assert (list(joints.name), list(joints.velocity)) == (["left_wheel_joint", "right_wheel_joint"], [])
    assert list(joints.position) == pytest.approx([0.3 / 0.036] * 2, abs=0.02), "radians of a wheel of 72 mm"


@pytest.mark.parametrize(
    ("packet", "velocity"),
    [
        ([145, 0, 200, 0, 200], BodyVelocity(0.2)),
        ([137, 0, 200, 0x80, 0], BodyVelocity(0.2)),
        ([137, 0, 200, 0x7F, 0xFF], BodyVelocity(0.2)),
        ([137, 0, 200, 1, 0x90], BodyVelocity(0.2, turn=0.5)),
        ([137, 0, 47, 0, 1], BodyVelocity(turn=0.4)),
        ([137, 0, 47, 255, 255], BodyVelocity(turn=-0.4)),
        ([146, 0, 51, 0, 51], BodyVelocity(0.1)),
        ([173], BodyVelocity()),
    ],
)
def test_programs_drive_in_each_way_of_the_document(packet, velocity):
    end = Create2()
    end.decode_command(bytes([131]))
    assert opcodes(bytes(packet)) == len(packet)
    read = end.decode_command(bytes(packet))
    assert (read.forward, read.turn) == pytest.approx((velocity.forward, velocity.turn), abs=1e-9)


def test_queried_packets_have_the_size_and_place_of_the_document():
    end = Create2()
    end.decode_command(bytes([131]))
    for x in (0.0, 0.3):
        assert end.encode_report(Telemetry((x, 0.0, 0.0), 0.0, BodyVelocity(0.3), 14.4, 0.5)) is None
    everything = end.decode_command(bytes([142, 100]))
    assert len(everything) == 80
    assert everything[12:14] == (300).to_bytes(2, "big"), "the distance since the last time"
    assert everything[17:19] == (14_400).to_bytes(2, "big")
    assert (everything[40], everything[48:50]) == (2, (300).to_bytes(2, "big"))
    assert end.decode_command(bytes([149, 3, 35, 19, 7])) == bytes([2, 0, 0, 0])


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6, 101, 106, 107])
def test_groups_of_packets_have_the_size_of_the_document(code):
    sizes = {0: 26, 1: 10, 2: 6, 3: 10, 4: 14, 5: 12, 6: 52, 101: 28, 106: 12, 107: 9}
    assert len(Create2().sensor(code)) == sizes[code]


def test_a_song_is_one_packet_of_any_length():
    assert opcodes(bytes([140, 0, 2, 70, 8, 72])) == opcodes(bytes([140, 0, 2, 70, 8, 72, 8])) == 7


#: By the document: each command that moves, stops or disables, besides those that drive, and those of its requests.
VERBS = {
    7: STAND, 128: STAND, 131: [], 132: [], 133: STAND, 134: [STAND, Refusal("Spot")],
    136: [STAND, Refusal("Max")], 138: Refusal("Motors"), 144: Refusal("PWM Motors"), 165: Refusal("Buttons"),
    167: Refusal("Schedule"), 173: STAND,
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(sent, meaning):
    end, packet = Create2(), bytes([sent, *bytes(15)])
    assert by_robot(end, packet[: opcodes(packet)]) == meaning
    drives = end.decode_command(bytes([145, 0, 200, 0, 200])) == BodyVelocity(0.2)
    assert drives is (sent in (131, 132))


def test_it_streams_a_frame_each_15_ms():
    assert pytest.approx(0.015) == 1 / Create2.report_rate
