# SPDX-License-Identifier: Apache-2.0
"""What `drone-bridge check` says about a class before it starts a process: one sentence per fault."""

import math
import struct
import time
from dataclasses import replace

import pytest
from own_robots import Create2, Kobuki, Pioneer, RoboMaster, Tello

from drone_bridge.robot_class import BodyVelocity, Request, Robot, Serial, Telemetry, Wheels
from drone_bridge.robot_class.topics import faults
from drone_bridge.robot_class.two_wheels import TwoWheels
from drone_bridge.robot_class.two_wheels_serial import AXLE_M, M_PER_COUNT, TwoWheelsSerial
from drone_bridge.robots.kobuki import DRIVE, packed

SIZES = {7: 1, 128: 1, 145: 5, 150: 2, 168: 4}


@pytest.mark.parametrize("robot", [TwoWheels, TwoWheelsSerial, Pioneer, Tello, Create2, RoboMaster, Kobuki])
def test_a_right_class_has_no_faults(robot):
    assert list(faults(robot)) == []


@pytest.mark.parametrize("rate", [2.0, 10.0, 50.0])
def test_a_class_may_count_on_its_rate_of_reports(rate):
    class Counting(TwoWheelsSerial):
        name, report_rate = "counting", rate

        def decode_report(self, packet):
            told = super().decode_report(packet)
            before, self.before = getattr(self, "before", None), told and self.wheels.pose
            if told is None or before is None:
                return told and replace(told, velocity=None)
            back = before.seen_from(self.before)
            return replace(told, velocity=BodyVelocity(-back.x * rate, turn=-back.yaw * rate))

    assert list(faults(Counting)) == []


def test_a_robot_that_answers_commands_has_to_declare_it():
    undeclared = type("Undeclared", (RoboMaster,), {"name": "undeclared", "answered": None})
    (sentence,) = faults(undeclared)
    assert sentence.startswith("Undeclared answers commands, and may execute them late: declare answered")
    other = type("Other", (RoboMaster,), {"name": "other", "answered": False})
    assert not any("answers commands" in each for each in faults(other))
    mute = type("Mute", (TwoWheels,), {"name": "mute", "answered": True})
    assert list(faults(mute)) == ["Mute.answered is True, but decode_command returns no answer to a command."]


def wrong(**methods):
    return type("Wrong", (TwoWheels,), {"name": "wrong", **methods})


def test_a_request_that_its_robot_does_not_recognise_is_named():
    ring = Request(lambda end: drive(0, 0), moves=False)
    assert list(faults(wrong(requests={"ring": ring}))) == [
        "Wrong.decode_command() does not return all_requests['ring'] for its packet."
    ]


def test_a_heading_of_an_imu_in_degrees_is_named():
    def decode(end, packet):
        told = Kobuki.decode_report(end, packet)
        return told and replace(told, imu_yaw=math.degrees(told.imu_yaw))

    found = next(faults(type("Wrong", (Kobuki,), {"name": "wrong", "decode_report": decode})))
    assert found.startswith("Wrong.encode_report() of imu_yaw (0.75,) is read as (42.9")


def drive(left, right):
    return f"drive {left:.0f} {right:.0f}\n".encode()


def sides(velocity):
    return [1000 * (velocity.forward + sign * velocity.turn * 0.15) for sign in (-1, 1)]


def broken_decode(end, packet):
    raise RuntimeError("bug in my decode")


@pytest.mark.parametrize(
    ("sentence", "methods"),
    [
        ("pitch=0.0, turn=1.5)) is read by decode_command as BodyVelocity(forward=0.0, ",
         {"encode_command": lambda _, v: drive(*reversed(sides(v)))}),
        (") is read by decode_command as BodyVelocity(forward=0.05, ",
         {"encode_command": lambda _, v: drive(*(side / 10 for side in sides(v)))}),
        ("encode_command() returns no packet for the neutral",
         {"encode_command": lambda _, v: drive(*sides(v)) if v != BodyVelocity() else b""}),
        ("turn=0.0)) is read by decode_command as BodyVelocity(forward=0.55, ",
         {"encode_command": lambda _, v: drive(*(side + 50 for side in sides(v)))}),
        ("turn=0.0)) is read by decode_command as BodyVelocity(forward=0.01, ",
         {"encode_command": lambda _, v: drive(*(side + 10 for side in sides(v)))}),
        ("turn=0.0)) is read by decode_command as BodyVelocity(forward=0.02, ",
         {"encode_command": lambda _, v: drive(*(max(20, side, key=abs) for side in sides(v)))}),
        ("encode_goodbye() is read by decode_command as BodyVelocity(forward=0.002, ",
         {"encode_goodbye": lambda _: drive(2, 2)}),
        ("encode_goodbye() is read by decode_command as BodyVelocity(forward=0.3, ",
         {"encode_goodbye": lambda _: drive(300, 300)}),
        ("encode_report() of position", {"decode_report": lambda _, packet: Telemetry((0.5, -2.0, 0.0), 0.5)}),
        ("requests['beep'] has b'beep', no packet by the framing of control: ", {"requests": {"beep": b"beep"}}),
        ("in broken_decode: RuntimeError: bug in my decode", {"decode_report": broken_decode}),
        ("encode_report() returns b'at 1000", {"decode_report": lambda _, packet: Telemetry(charge=12)}),
        ("has charge=12, which must be", {"decode_report": lambda _, packet: Telemetry(charge=12)}),
        ("report_raet is not used. Name it report_rate, ", {"report_raet": 5.0}),
        ("decode_report() depends on the time",
         {"decode_report": lambda _, packet: Telemetry((1.0, -2.0, 0.0), 0.5, time_s=time.monotonic())}),
        ("which decode_report reads as no Telemetry", {"decode_report": lambda _, packet: None}),
        (".topics has flying (", {"topics": ("odom", "flying")}),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_method(sentence, methods):
    found = list(faults(wrong(**methods)))
    assert any(sentence in each for each in found), found
    assert all(each.startswith("Wrong") for each in found)


def misread(change, **wheels):
    """Return a robot on a serial line whose odometry has a mistake."""

    def init(end):
        TwoWheelsSerial.__init__(end)
        end.wheels = Wheels(**{"axle_m": AXLE_M, "m_per_count": M_PER_COUNT} | wheels)

    def decode(end, packet):
        told = TwoWheelsSerial.decode_report(end, packet)
        return told and replace(told, **{name: each(getattr(told, name)) for name, each in change.items()})

    return type("Wrong", (TwoWheelsSerial,), {"name": "wrong", "__init__": init, "decode_report": decode})


def times(forward, turn=1.0):
    return lambda v: v and BodyVelocity(forward * v.forward, turn=turn * v.turn)


@pytest.mark.parametrize(
    ("robot", "sentence"),
    [
        (misread({"position": lambda p: tuple(1000 * each for each in p)}), "position 2000.00, 0.00, 0.00 for 2.00, "),
        (misread({"yaw": lambda yaw: -yaw}), "yaw -1.05 for 1.05, driven in a left turn"),
        (misread({"position": lambda p: (p[0], -p[1], 0.0)}), ", driven in a left arc"),
        (misread({"velocity": times(0.1)}), "velocity 0.05, "),
        (
            misread({"velocity": times(1.0, -1.0)}),
            "-1.50 for 0.00, 0.00, 0.00, 0.00, 0.00, 1.50, driven in a left turn",
        ),
        (misread({"velocity": times(1.0, 180 / math.pi)}), "85.94 for "),
    ],
)
def test_a_way_that_is_read_wrongly_is_named_with_both_numbers(robot, sentence):
    found = next(faults(robot))
    assert found.startswith("Wrong.decode_report() reads ")
    assert sentence in found


def test_an_arc_to_the_wrong_side_is_named():
    class Wrong(Kobuki):
        name = "wrong"

        def encode_command(self, velocity):
            speed, radius = struct.unpack("<hh", super().encode_command(velocity)[5:9])
            return packed((DRIVE, struct.pack("<hh", speed, -radius if abs(radius) > 1 else radius)))

    found = next(faults(Wrong))
    assert "One has a wrong sign." in found


def test_a_counter_that_is_read_without_its_wrap_is_named():
    class Wrong(TwoWheelsSerial):
        name = "wrong"

        def __init__(self):
            super().__init__()
            self.counter = Wheels(AXLE_M, M_PER_COUNT, bits=40)

        def decode_report(self, packet):
            *_, left, right, _ = struct.unpack("<4H", packet[4:-1])
            return Telemetry(*self.counter.counted(left, right))

    assert ", driven back: a sign, unit or wrap is wrong." in next(faults(Wrong))


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def short(data):
    return data[:2] + bytes([data[2] + 1]) + data[3:]


@pytest.mark.parametrize(
    ("method", "change", "reason"),
    [
        ("encode_command", flipped, "its checksum is refused by is_valid()"),
        ("encode_command", short, "its checksum is refused by is_valid()"),
        ("encode_report", flipped, "its checksum is refused by is_valid()"),
        ("encode_report", short, "its length says "),
    ],
)
def test_bytes_that_are_no_packet_are_named_with_method_link_and_reason(method, change, reason):
    right = getattr(Pioneer, method)
    found = list(faults(type("Wrong", (Pioneer,), {"name": "wrong", method: lambda *words: change(right(*words))})))
    assert len(found) == 1, found
    assert found[0].startswith(f"Wrong.{method}(")
    assert f", no packet by the framing of control: {reason}" in found[0]


def test_a_wire_without_zero_has_its_nearest_value_as_neutral():
    """Such as a byte for each wheel, from 0 to 255, of which none is the middle."""

    def encode(_, velocity):
        return f"drive {' '.join(str(round(127.5 * (side / 1000 + 1))) for side in sides(velocity))}\n".encode()

    def decode(_, packet):
        if packet == b"hello\n":
            return packet
        left, right = (int(side) / 127.5 - 1 for side in packet.split()[1:])
        return BodyVelocity((left + right) / 2, turn=(right - left) / 0.3)

    assert list(faults(wrong(encode_command=encode, decode_command=decode))) == []


def opcodes(data):
    """Split both directions by the first byte: opcodes to the robot, frames with a checksum from it."""
    if data[0] == 19:
        if len(data) < 2 or data[1] != 8:
            return 0 if len(data) < 2 else -1
        return -1 if len(data) >= 11 and sum(data[:11]) & 255 else 11
    if data[0] in (148, 149):
        return 2 + data[1] if len(data) > 1 else 0
    return SIZES.get(data[0], -1)


class Deaf(Robot):
    """Robot whose framing reads a broken frame's rest as opcodes, which swallow what follows."""

    name, control = "deaf", Serial(115200, opcodes)

    def encode_command(self, v):
        return struct.pack(">Bhh", 145, *(round(1000 * (v.forward + s * v.turn * 0.1175)) for s in (1, -1)))

    def decode_command(self, data):
        right, left = struct.unpack(">hh", data[1:])
        return BodyVelocity((right + left) / 2000, turn=(right - left) / 235)

    def decode_report(self, data):
        if data[0] != 19:
            return None
        x, y = struct.unpack(">ii", data[2:-1])
        return Telemetry((x / 1000, y / 1000, 0.0), 0.5)

    def encode_report(self, t):
        frame = bytes([19, 8]) + struct.pack(">ii", *(round(1000 * each) for each in t.position[:2]))
        return frame + bytes([-sum(frame) & 255])


def test_a_framing_that_one_broken_byte_makes_deaf_is_named():
    _, found = faults(Deaf)  # the first one: it reports no heading
    assert found.startswith("Deaf.control: after ")
    assert "none of 50 good ones is read" in found
