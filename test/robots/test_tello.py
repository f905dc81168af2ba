# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check tello`: signs and units, in states of real drones."""

import math

import pytest
from verbs import STAND, by_robot, verbs

from drone_bridge.robot_class import BodyVelocity, Move, Refusal, Telemetry
from drone_bridge.robots.tello import STILL, Tello

REST = "vgx:0;vgy:0;vgz:0;templ:43;temph:46;tof:10;h:0;bat:83;baro:150.12;time:0"


def told(text):
    return Tello().decode_state(f"{text};\r\n".encode())


def test_right_and_clockwise_are_positive_and_each_axis_is_bounded():
    assert Tello().encode_command(BodyVelocity(2.0, 1.0, -0.2, turn=-2.0)) == b"rc -25 50 -10 100"
    assert Tello().encode_command(BodyVelocity(50.0, -50.0, -50.0, turn=50.0)) == b"rc 100 100 -100 -100"
    with pytest.raises(ValueError, match="NaN"):
        Tello().encode_command(BodyVelocity(math.nan))


@pytest.mark.parametrize("axis", ["forward", "left", "up", "turn"])
def test_neither_a_tello_nor_a_vehicle_at_the_server_is_faster_than_commanded(axis):
    """A published model of it has 1.7 m/s level, 0.8 m/s upwards, and 1.43 rad/s at rc 100."""
    published = {"forward": 1.7, "left": 1.7, "up": 0.8, "turn": 1.43}[axis]
    for share in (0.3, 1.0):
        sent = Tello().encode_command(BodyVelocity(**{axis: share * published}))
        number = max(abs(int(each)) for each in sent.split()[1:])
        assert number / 100 * published <= share * published + 0.01
        read = getattr(Tello().decode_command(sent), axis)
        assert 0 < abs(read) <= number / 100 * published
        assert abs(getattr(Tello().decode_command(b"rc 100 100 100 100"), axis)) <= published


@pytest.mark.parametrize(
    "text",
    [  # published by their owners; tilted on the ground, or in a hand
        f"pitch:1;roll:5;yaw:0;{REST};agx:15.00;agy:-97.00;agz:-988.00",
        f"mid:-1;x:0;y:0;z:0;mpry:0,0,0;pitch:3;roll:-1;yaw:0;{REST};agx:54.00;agy:28.00;agz:-1004.00",
        f"pitch:11;roll:-18;yaw:118;{REST};agx:242.00;agy:315.00;agz:-1057.00",
        f"pitch:-1;roll:-179;yaw:148;{REST};agx:-22.00;agy:5.00;agz:1002.00",
    ],
)
def test_the_specific_force_of_a_drone_at_rest_is_up_by_its_own_attitude(text):
    state = told(text)
    roll, pitch = state.roll, state.pitch
    up = (-math.sin(pitch), math.cos(pitch) * math.sin(roll), math.cos(pitch) * math.cos(roll))
    size = math.hypot(*state.acceleration)
    assert size == pytest.approx(9.81, rel=0.16)
    assert sum(one * other for one, other in zip(up, state.acceleration, strict=True)) / size > math.cos(0.07)


def test_queries_are_answered_as_clients_read_them():
    """Their formats: those that djitellopy 2.5.0 and easytello 0.0.7 parse."""
    tello = Tello()
    assert tello.decode_command(b"height?") == b"error", "before its first state"
    tello.encode_report(Telemetry(yaw=-math.pi / 2, charge=0.87, height=1.2))
    assert tello.decode_command(b"speed 30") == b"ok"
    told = {"battery": "87", "speed": "30", "height": "120", "time": "0", "temp": "60~62C", "tof": "1200mm",
            "baro": "0", "attitude": "pitch:0;roll:0;yaw:90;", "acceleration": "agx:0;agy:0;agz:-1000;"}  # fmt: skip
    assert {name: tello.decode_command(f"{name}?".encode()).decode() for name in told} == told


def test_accelerations_are_in_thousandths_of_g():
    at_rest = ((-9, -4, -997), (6, 0, -999), (-10, 16, -999), (-13, -5, -998), (5, 0, -1002), (-10, -5, -1000))
    states = [told(f"pitch:0;roll:0;yaw:0;{REST};agx:{x}.00;agy:{y}.00;agz:{z}.00") for x, y, z in at_rest]
    sizes = [math.hypot(*state.acceleration) for state in states]
    assert sum(sizes) / len(sizes) == pytest.approx(9.80665, rel=0.004)


def test_velocity_is_along_the_heading_and_height_is_measured():
    state = told(
        "pitch:0;roll:0;yaw:-90;vgx:5;vgy:-2;vgz:3;templ:60;temph:62;tof:100;h:70;bat:87;time:0;agx:0;agy:0;agz:-999"
    )
    assert state.velocity.linear == pytest.approx((0.2, -0.5, -0.3))
    assert (state.height, state.charge, round(state.yaw, 3)) == (1.0, 0.87, 1.571)


def test_without_an_echo_the_height_is_that_above_the_start():
    state = "pitch:0;roll:0;yaw:0;vgx:0;vgy:0;vgz:0;templ:60;temph:62;tof:%d;h:70;bat:87;time:0;agx:0;agy:0;agz:-999"
    assert [told(state % tof).height for tof in (1000, 6553, 8192)] == [10.0, 0.7, 0.7]


def test_it_flies_while_the_motors_time_goes_on():
    tello = Tello()
    states = [tello.decode_state(f"pitch:0;roll:0;yaw:0;{REST[:-1]}{s};agx:0;agy:0;agz:-999;".encode()).is_flying
              for s in [0] * 3 + [1] * 10 + [2] * (STILL + 2)]  # fmt: skip
    assert (states[0], states[3], states[-1]) == (None, True, False)


def test_a_refusal_has_the_charge_that_is_its_usual_cause():
    tello = Tello()
    tello.decode_state(f"pitch:1;roll:5;yaw:0;{REST.replace('83', '8')};agx:0;agy:0;agz:-1000;\r\n".encode())
    assert tello.decode_report(b"error\r\n").reason == "the drone answered 'error', with 8% of its charge"


#: By the SDK 2.0: each command that moves or stops, and what its end does.
VERBS = {
    "takeoff": "takeoff", "land": "land", "emergency": "emergency", "stop": [STAND, b"ok"], "rc 0 0 0 0": STAND,
    "speed 50": b"ok", "up 50": Move(up=0.5), "down 50": Move(up=-0.5), "left 50": Move(left=0.5),
    "right 50": Move(left=-0.5), "forward 50": Move(0.5), "back 50": Move(-0.5), "cw 50": Move(turn=-0.872665),
    "ccw 50": Move(turn=0.872665), "go 50 0 0 20": Move(0.5, speed=0.2),
    **{text: Refusal(text.split()[0], answer=b"error") for text in
       ("go 50 0 0 20 m1", "curve 1 2 3 4 5 6 20", "curve 1 2 3 4 5 6 20 m1", "jump 50 0 0 20 0 m1 m2", "flip l", "mon",
        "moff", "mdirection 2", "throwfly", "motoron", "motoroff", "up 5", "cw 0")},
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(sent, meaning):
    assert by_robot(Tello(), sent.encode()) == meaning
