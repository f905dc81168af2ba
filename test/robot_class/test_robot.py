# SPDX-License-Identifier: Apache-2.0
"""A robot in one class: its connections and both sessions, in isolation, with a fake clock."""

import json
import math
import re
import struct
from functools import partial
from types import MappingProxyType, SimpleNamespace
from unittest.mock import Mock

import pytest
from own_robots import Create2, Pioneer, RoboMaster, Tello, pioneer
from robot_class_talk import PARAMETERS, Asked, ClientTalk, OperatorParameters, bytes_of, counters, data_of, outcomes
from session_talk import SessionTalk, notes, published, sent

from drone_bridge.kind import Side, load
from drone_bridge.motion.body_velocity import STILL
from drone_bridge.net.connector import Cancellation
from drone_bridge.robot_class import (
    Answer,
    BodyVelocity,
    Camera,
    Delimited,
    Request,
    Robot,
    Serial,
    Tcp,
    Telemetry,
    TiltedDrone,
    Udp,
)
from drone_bridge.robot_class.client_session import CONNECTED, GREETING, UNGREETED, WAITING, WITHHELD
from drone_bridge.robot_class.connection import Packet, RobotClassConnection, StatePacket
from drone_bridge.robot_class.links import login_text
from drone_bridge.robot_class.vehicle import emulator
from drone_bridge.robot_class.vehicle.body import BATTERY_S, FOLLOWS, HOVER_HEIGHT, LANDS, EmulatedBody
from drone_bridge.robot_class.vehicle.robot_session import SERVING, RobotClassVehicleSession
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.clients import LOST
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import (
    EMERGENCY_AGE_S,
    FINAL_REPEATS,
    SETTLING_S,
    Call,
    Close,
    Note,
    Outcome,
    Publish,
    Send,
)
from drone_bridge.wire import NEED_DATA, LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.addresses import AllowedPeers
from drone_bridge.wire.outgoing import UNENCODABLE, Secret

CLOSE, ENABLE, OPEN, RVEL, SIP, STATE, VEL = (
    getattr(pioneer, name) for name in ("CLOSE", "ENABLE", "OPEN", "RVEL", "SIP", "STATE", "VEL")
)
command, packet = pioneer.command, pioneer.packet
NEUTRAL = command(VEL, 0) + command(RVEL, 0)
SIP_PACKET = packet(SIP, STATE.pack(0, 0, 0, 100, 100, 129, 0, 0, 1, 0, 0))
TELLO_STATE = (
    b"pitch:0;roll:0;yaw:0;vgx:0;vgy:0;vgz:0;templ:60;temph:62;tof:70;h:70;bat:87;baro:0;time:0;agx:0;agy:0;agz:-999;"
)
STANDING = TELLO_STATE.replace(b"h:70", b"h:0")
ONE, OTHER = ("127.0.0.1", 9000), ("127.0.0.1", 9001)


# The description.


LINES = Tcp(1, Delimited(b"\n"))
REPORTS = Udp(2, listen=True)


def described(**attributes):
    return type("Wrong", (Robot,), {"name": "wrong", "control": LINES, **attributes})


@pytest.mark.parametrize(
    ("sentence", "attributes"),
    [
        ("max_speeds has 1.0 for 'pitch'", {"max_speeds": {"x": 1.0, "pitch": 1.0}}),
        ("max_speeds has 0 for 'y'", {"max_speeds": {"x": 1.0, "y": 0}}),
        ("max_speeds has 500 for 'x'", {"max_speeds": {"x": 500}}),
        ("max_speeds has '1' for 'x'", {"max_speeds": {"x": "1"}}),
        ("max_speeds is 1.0, and must be a dict", {"max_speeds": 1.0}),
        ("requests is ['land'], and must be a dict", {"requests": ["land"]}),
        ("name is 'take off'", {"requests": {"take off": b"up"}}),
        ("rate is 0.05, and must be from 1 to 200", {"rate": 0.05}),
        ("link_timeout_s is '3'", {"link_timeout_s": "3"}),
        ("robot_stops_after_s is 1000", {"robot_stops_after_s": 1000}),
        ("topics has 'odometry'", {"topics": ("odometry",)}),
        ("topics is the text 'odom'", {"topics": "odom"}),
        ("encoding 'png'", {"camera": Camera("png")}),
        ("must have a link", {"camera": Camera("h264")}),
        ("camera.link must be", {"camera": Camera("h264", REPORTS, b"on", b"", 4, 3, (1.0, 1.0))}),
        ("it has no link", {"control": None}),
        ("other must be Udp", {"control": REPORTS, "other": Udp(3, listen=True)}),
        (
            "camera.link must be",
            {"control": REPORTS, "camera": Camera("h264", Udp(3, listen=True), b"on", b"", 4, 3, (1.0, 1.0))},
        ),
        ("latched is the text 'landed'", {"latched": "landed"}),
        ("control is a stream", {"control": Tcp(1)}),
        ("control has port 0", {"control": Udp(0)}),
        ("control has port '7700'", {"control": Tcp("7700", Delimited(b"\n"))}),
        ("name is 'My Bot'", {"name": "My Bot"}),
        ("which is no function", {"control": Tcp(1, b"\n")}),
        ("other must be Udp", {"other": LINES}),
        ("other must be Udp", {"other": Udp(2)}),
        ("other must be Udp", {"control": Serial(9600, Delimited(b"\n")), "other": REPORTS}),
        ("and another link listen on one port: 2", {"one": REPORTS, "other": REPORTS}),
        ("must have bytes", {"requests": {"dock": "dock"}}),
        ("it has a drone, and no encode_shares", {"drone": TiltedDrone(max_tilt=0.3, max_climb=1.0, max_yaw_rate=1.5)}),
    ],
)
def test_an_inconsistent_description_is_refused_by_one_sentence(sentence, attributes):
    with pytest.raises(ValueError, match=f"(?i)Wrong.*{re.escape(sentence)}"):
        described(**attributes)


def test_a_robot_without_a_summary_has_its_name():
    assert type("Bare", (Pioneer,), {"name": "bare", "summary": ""}).KIND.summary == "the robot bare"


def test_topics_are_names_with_types_or_a_mapping():
    one = described(topics=("odom", "sonar: sensor_msgs/Range"))
    other = described(topics={"sonar": "sensor_msgs/Range", "odom": ""})
    for each in (one, other):
        assert (each.standard_topics, each.own_topics) == (("odom",), {"sonar": "sensor_msgs/Range"})


def test_a_description_without_the_robot_s_end_has_only_a_bridge():
    kind = described().KIND
    assert kind.server is kind.emulator is None
    assert kind.conversation == kind.commands == ""
    assert Pioneer.KIND.server
    assert Pioneer.KIND.emulator


def test_of_more_than_eight_requests_those_that_end_motion_are_first_buttons():
    class Busy(Pioneer):
        name, stop = "busy", b"stop"
        requests = MappingProxyType(
            {
                **{f"move_{number}": b"%d" % number for number in range(7)},
                **{"beep": Request(b"beep", moves=False), "halt": b"stop", "land": b"land", "emergency": b"off"},
            }
        )

    assert list(Busy.KIND.buttons)[:4] == ["halt", "land", "emergency", "move_0"]
    assert {name for name, moves in Busy.KIND.buttons.items() if not moves} == {"halt", "land", "emergency", "beep"}
    assert [*Busy.KIND.emergencies] == ["emergency"]
    assert list(Create2.KIND.buttons.items()) == [("dock", True), ("clean", True), ("beep", False)]
    assert list(Tello.KIND.buttons.items()) == [("takeoff", True), ("land", False), ("emergency", False)]
    assert not Create2.KIND.emergencies


def test_the_reader_of_commands_recognizes_neutral():
    read = load(Pioneer.KIND.commands)()
    assert list(read(command(VEL, 300)[:5])) == []
    assert list(read(command(VEL, 300)[5:] + NEUTRAL)) == [False, True, True]


# Connections.


def client():
    return RobotClassConnection(Pioneer, Side.OPERATOR)


def test_a_stream_is_split_in_any_chunks():
    connection = client()
    for byte in SIP_PACKET + packet(0):
        connection.receive_data(bytes([byte]))
    assert list(connection.events()) == [StatePacket(SIP_PACKET), Packet(packet(0))]


def test_a_negative_size_skips_to_the_next_packet():
    connection = client()
    broken = bytearray(SIP_PACKET)
    broken[10] ^= 1
    connection.receive_data(b"noise\xfa" + bytes(broken) + SIP_PACKET)
    assert list(connection.events()) == [StatePacket(SIP_PACKET)]
    assert not connection.inside_message


def endless(data):
    return {b"m"[0]: 100_000, b"n"[0]: 0, b"e"[0]: 1 // 0 if data[:1] == b"e" else 1}[data[0]]


class Endless(Robot):
    """Robot with endless or invalid packets."""

    name, control = "endless", Tcp(1, endless)


@pytest.mark.parametrize("data", [b"m", b"n" * 100_000, b"e", b"?"])
def test_invalid_and_endless_packets_close_a_stream(data):
    connection = RobotClassConnection(Endless, Side.OPERATOR)
    connection.receive_data(data)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError):
            connection.next_event()


def test_a_packet_with_a_known_size_is_split_once_complete():
    seen = []

    def split(data):
        seen.append(len(data))
        return 1000

    class Long(Robot):
        name, control = "long", Tcp(1, split)

    connection = RobotClassConnection(Long, Side.OPERATOR)
    for _ in range(200):
        connection.receive_data(bytes(10))
        list(connection.events())
    assert seen == [10, 1000, 10, 1000]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("decode_repot", "decode_report"),
        ("handshakes", "handshake"),
        ("encodeCommand", "encode_command"),
        ("encode_commnad", "encode_command"),
        ("lastwords", "last_words"),
    ],
)
def test_a_method_with_a_misspelled_name_is_refused(name, method):
    class Base(Robot):
        def helper(self):
            """Be called by the robot's own methods."""

    with pytest.raises(ValueError, match=rf"Wrong\.{name} is not used\. Name it {method}, or _{name} "):
        type("Wrong", (Base,), {"name": "wrong", "control": LINES, name: lambda self, packet: None})
    both = {each: lambda self, packet: None for each in (name, method, f"_{name}")}
    assert type("Right", (Base,), {"name": "right", "control": LINES, **both}).KIND.name == "right"


class Lines(Robot):
    """Robot with several lines in a datagram, and a number in each step of its handshake."""

    name, control = "lines", Udp(1, Delimited(b"\n"))

    def __init__(self):
        self.number = 0

    def hello(self):
        self.number += 1
        return b"hello %d\n" % self.number

    def handshake(self):
        yield self.hello, lambda packet: packet == b"hi\n"

    def encode_command(self, velocity):
        return b"%g\n" % velocity.forward

    def decode_report(self, packet):
        return Telemetry(voltage=float(packet)) if packet != b"hi\n" else None

    def decode_command(self, packet):
        return None if packet.startswith(b"hello") else BodyVelocity(float(packet))


@pytest.mark.parametrize(
    ("data", "voltages", "refused"),
    [
        (b"1\n2\n3\n", [1.0, 2.0, 3.0], False),
        (b"1\n2", [1.0], True),
        (b"1\nx\n3\n", [1.0], True),
        (b"", [], True),
    ],
)
def test_a_datagram_may_have_several_packets(data, voltages, refused):
    connection, seen, was_refused = RobotClassConnection(Lines, Side.OPERATOR), [], False
    connection.receive_data(data)
    connection.receive_data(b"4\n")
    for _ in range(6):
        try:
            for event in connection.events():
                seen.append(event.meaning.voltage)
        except RemoteProtocolError:
            was_refused = True
    assert (seen, was_refused) == ([*voltages, 4.0], refused), "the next datagram is read"


def test_a_repeated_step_of_the_handshake_is_encoded_anew():
    talk = ClientTalk(Lines)
    steps = [each for each in data_of(talk.connect() + talk.run(1.2)) if each.startswith(b"hello")]
    assert steps == [b"hello 1\n", b"hello 2\n", b"hello 3\n"]
    assert b"0\n" in data_of(talk.hear(b"hi\n7\n"))
    assert talk.session.state == CONNECTED


def test_an_invalid_datagram_does_not_affect_others():
    connection = RobotClassConnection(Tello, Side.VEHICLE)
    connection.receive_data(b"rc 1 2")
    connection.receive_data(b"takeoff")
    with pytest.raises(RemoteProtocolError):
        connection.next_event()
    assert connection.next_event().meaning == (Tello.all_requests["takeoff"],)
    assert connection.next_event() is NEED_DATA


def test_the_state_port_has_its_own_reader():
    connection = RobotClassConnection(Tello, Side.OPERATOR)
    connection.receive_data(TELLO_STATE, "state")
    connection.receive_data(TELLO_STATE)  # from a wire log, which does not record it
    connection.receive_data(b"ok", "")
    assert [type(event.meaning) for event in connection.events()] == [Telemetry, Telemetry, Answer]


def test_only_one_whole_packet_is_sent():
    for wrong in (Packet(NEUTRAL), Packet(SIP_PACKET[:-1]), Packet(b""), Packet("text"), StatePacket(packet(0))):
        with pytest.raises(LocalProtocolError):
            RobotClassConnection(Pioneer, Side.VEHICLE).send(wrong)


def test_packets_that_a_client_could_not_read_are_not_sent():
    assert RobotClassConnection(Tello, Side.VEHICLE).send(Packet(b"ok")) == b"ok"
    with pytest.raises(LocalProtocolError):
        RobotClassConnection(Tello, Side.VEHICLE).send(Packet(b"\x86"))


class Numbers(Robot):
    """Packets to the robot with any six floats of a velocity."""

    name, control = "numbers", Udp(1)

    def decode_command(self, packet):
        return BodyVelocity(*struct.unpack("<6d", packet))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", range(6))
def test_a_non_finite_velocity_is_no_command(wrong, place):
    numbers = [0.0] * 6
    numbers[place] = wrong
    connection = RobotClassConnection(Numbers, Side.VEHICLE)
    connection.receive_data(struct.pack("<6d", *numbers))
    with pytest.raises(RemoteProtocolError):
        connection.next_event()


def test_a_deeply_nested_document_is_an_invalid_packet():
    nested = type("Nested", (Numbers,), {"name": "nested", "decode_command": lambda _, data: json.loads(data)})
    connection = RobotClassConnection(nested, Side.VEHICLE)
    connection.receive_data(b"[" * 100_000)
    with pytest.raises(RemoteProtocolError):
        connection.next_event()


# The client's session.


@pytest.fixture
def talk():
    return ClientTalk(Pioneer)


STEPS = [packet(number) for number in range(3)]


@pytest.fixture
def greeted(talk):
    talk.connect(*STEPS)
    return talk


def test_a_greeting_waits_for_each_answer_and_ends_with_neutral(talk):
    assert bytes_of(talk.connect()) == packet(0)
    assert bytes_of(talk.run(0.6)) == packet(0), "again, as nobody has answered"
    assert bytes_of(talk.hear(packet(0))) == packet(1)
    talk.hear(packet(1))
    assert not talk.session.is_open
    greeted = talk.hear(packet(2))
    assert bytes_of(greeted) == packet(OPEN) + NEUTRAL + command(ENABLE, 1) + NEUTRAL
    assert talk.session.state == CONNECTED
    assert talk.starts >= 1


def test_a_connection_left_open_by_a_killed_client_is_closed_first(talk):
    assert bytes_of(talk.connect()) == packet(0)
    assert bytes_of(talk.hear(SIP_PACKET)) == packet(CLOSE) + packet(0)
    assert not sent(talk.hear(SIP_PACKET)), "one that was under way"
    for step in STEPS:
        greeted = talk.hear(step)
    assert bytes_of(greeted).startswith(packet(OPEN))
    assert talk.session.state == CONNECTED


def test_the_decided_velocity_is_clamped_and_sent_at_a_steady_rate(greeted):
    greeted.hear(SIP_PACKET)
    greeted.command = BodyVelocity(forward=0.3, left=5.0, turn=-90.0)
    assert greeted.sends(0.51) == [command(VEL, 300) + command(RVEL, -498)] * 10


def test_telemetry_is_published_and_silent_robot_dropped_after_neutral():
    reported = []
    feedback = SimpleNamespace(measured=lambda measured, now_s: reported.append((measured, now_s)))
    talk = ClientTalk(Pioneer, feedback=feedback)
    talk.connect(*STEPS)
    (told,) = published(talk.hear(SIP_PACKET))
    assert told.meaning.velocity.forward == pytest.approx(0.1)
    assert reported == [(told.meaning, talk.now_s)], "before the publication"
    assert talk.session.is_proven
    talk.run(2.9)
    assert talk.session.state == CONNECTED
    left = talk.run(0.2)
    assert [type(each) for each in left].count(Close) == 1
    assert bytes_of(left).endswith(NEUTRAL + packet(CLOSE))
    assert talk.session.state == WAITING


def strict(data):
    return Pioneer.control.framing(data) if data[:1] != b"?" else 1 // 0


def test_the_last_neutral_precedes_publications_of_its_turn():
    talk = ClientTalk(type("Strict", (Pioneer,), {"name": "strict", "control": Tcp(1, strict)}))
    talk.connect(*STEPS)
    actions = talk.hear(SIP_PACKET + b"?")
    assert bytes_of(actions) == NEUTRAL + packet(CLOSE)
    kinds = [type(each) for each in actions if not isinstance(each, Note)]
    assert kinds == [Send, Send, Publish, Close]


def test_neutral_is_sent_first_after_a_stall_and_last_at_the_end(greeted):
    greeted.command = BodyVelocity(forward=0.3)
    greeted.run(0.5)
    assert bytes_of(greeted.session.resume(greeted.now_s)) == NEUTRAL
    for end in (greeted.session.lost, greeted.session.end):
        greeted.connect(*STEPS)
        assert bytes_of(end(greeted.now_s)) == NEUTRAL + packet(CLOSE)
    assert greeted.session.is_over


def fail(*_):
    raise LookupError("a fault of the description")


@pytest.mark.parametrize(("robot", "neutral"), [(Pioneer, [NEUTRAL]), (Tello, [b"rc 0 0 0 0"] * FINAL_REPEATS)])
def test_neutral_is_last_although_leave_fails(robot, neutral):
    talk = ClientTalk(type("Rude", (robot,), {"name": "rude", "encode_goodbye": fail}))
    talk.connect(*(STEPS if robot is Pioneer else [b"ok"]))
    actions = [*talk.session.end(talk.now_s), *talk.run(1.0)]
    assert data_of(actions) == neutral
    assert counters(actions) == [UNENCODABLE]
    assert talk.session.is_over


def fails_at_its_call(fail):
    return fail()


def fails_after_a_step(fail):
    yield b"hello\n"
    fail()


def fails_after_an_answer(fail):
    yield b"hello\n", lambda _: True
    fail()


def fails_in_a_step(fail):
    yield fail, lambda _: True


def fails_in_a_repeat(fail):
    steps = iter([b"hello\n"])
    yield lambda: next(steps, None) or fail(), lambda packet: packet == b"hi\n"


def fails_in_a_test(fail):
    yield b"hello\n", lambda _: fail()


def test_a_robot_whose_greeting_fails_gets_neutral_until_it_succeeds(monkeypatch):
    robot = type("Rude", (Mute,), {"name": "rude", "handshake": lambda _: fails_after_a_step(fail)})
    talk = ClientTalk(robot)
    talk.command = BodyVelocity(0.5)
    assert bytes_of([*talk.connect(), *talk.run(0.9)]) == 2 * b"hello\n0\n"
    monkeypatch.setattr(robot, "handshake", lambda _: iter([b"hi\n"]))
    assert bytes_of(talk.run(0.6)).startswith(b"hi\n0\n0.5\n")


FAILING = [
    fails_at_its_call,
    fails_after_a_step,
    fails_after_an_answer,
    fails_in_a_step,
    fails_in_a_repeat,
    fails_in_a_test,
]


@pytest.mark.parametrize("error", [RuntimeError(), OSError(5, "no"), LookupError("?"), SystemExit(0)], ids=repr)
@pytest.mark.parametrize("handshake", FAILING)
def test_whatever_a_greeting_raises_the_robot_is_not_driven(handshake, error):
    fail = Mock(side_effect=error)
    talk = ClientTalk(type("Rude", (Mute,), {"name": "rude", "handshake": lambda _: handshake(fail)}))
    talk.command = BodyVelocity(0.5)
    actions = talk.connect()
    for _ in range(3):
        actions += [*talk.hear(b"1\n"), *talk.run(0.6)]
    assert talk.session.state == GREETING
    assert b"0.5" not in bytes_of(actions)
    assert handshake is fails_in_a_test or UNENCODABLE in counters(actions)


class Mute(Robot):
    """Robot without telemetry."""

    name, control = "mute", LINES

    def encode_command(self, velocity):
        return f"{velocity.forward:g}\n".encode()


def test_a_robot_without_telemetry_is_never_silent():
    talk = ClientTalk(Mute)
    assert bytes_of(talk.connect()) == b"0\n"
    assert len(sent(talk.run(60.0))) in (1199, 1200)
    assert talk.session.is_open


# A robot on a stream that has stopped reading: its system still acknowledges, and it would execute all later.

MOVING, DRIVEN = BodyVelocity(forward=0.3), command(VEL, 300) + command(RVEL, 0)


def reporting(talk, seconds, period_s=0.1):
    """Run with reports at a steady rate. Return all actions."""
    actions = []
    for _ in range(round(seconds / period_s)):
        actions += [*talk.run(period_s), *talk.hear(SIP_PACKET)]
    return actions


@pytest.fixture
def driven(greeted):
    greeted.command = MOVING
    reporting(greeted, 1.0)
    return greeted


def moved_s(talk, seconds):
    """Return for how long motion is still sent, in steps of 10 ms, and the last data."""
    last_s, last = 0.0, b""
    for step in range(1, round(seconds / 0.01) + 1):
        if data := bytes_of(talk.run(0.01)):
            last = data
        if DRIVEN in data:
            last_s = step * 0.01
    return last_s, last


def test_a_silent_stream_gets_neutral_after_command_timeout_and_no_motion(driven):
    last_s, last = moved_s(driven, 2.5)
    assert PARAMETERS.command_timeout - 0.06 < last_s < PARAMETERS.command_timeout + 0.06
    assert last == NEUTRAL
    assert driven.session.state == CONNECTED
    actions = [*driven.hear(SIP_PACKET), *driven.run(0.06)]
    assert bytes_of(actions) == DRIVEN, "it reports again"


def test_motion_withheld_from_a_silent_stream_is_counted_and_said(driven):
    said = [each for each in driven.run(1.0) if isinstance(each, Note) and each.counter == WITHHELD]
    assert len(said) in (9, 10)
    assert all("moved for" in each.sentence and each.is_ongoing for each in said)


def test_a_stream_that_reports_rarely_is_silent_after_three_reports():
    talk = ClientTalk(type("Rare", (Pioneer,), {"name": "rare", "report_rate": 1.25}))
    talk.connect(*STEPS)
    talk.command = MOVING
    assert DRIVEN in bytes_of(reporting(talk, 8.0, 0.8)[-5:])
    assert moved_s(talk, 2.9)[0] == pytest.approx(3 * 0.8, abs=0.06)


def test_motion_begins_although_a_robot_reports_only_when_it_moves():
    talk = ClientTalk(Pioneer, parameters=OperatorParameters(link_timeout=600.0))
    talk.connect(*STEPS)
    talk.command = MOVING
    reporting(talk, 1.0)
    for expected_s in (PARAMETERS.command_timeout, 0.0):  # then it did not report that it moved
        talk.command = None
        talk.run(60.0)
        talk.command = MOVING
        assert moved_s(talk, 2.0)[0] == pytest.approx(expected_s, abs=0.06)


def test_a_landing_is_not_withheld_from_a_silent_stream(driven):
    driven.rank = Rank.LANDING
    assert moved_s(driven, 2.5)[0] == pytest.approx(2.5, abs=0.06)


def test_a_stall_of_the_bridge_is_no_silence_of_a_stream(driven):
    driven.run(0.4)
    driven.now_s += 5.0
    driven.session.resume(driven.now_s)
    assert bytes_of(driven.run(0.1)).startswith(DRIVEN)


def test_motion_is_withheld_neither_over_datagrams_nor_without_hear(flying):
    deaf = ClientTalk(Mute)
    deaf.connect()
    flying.run(0.1)
    flying.hear(TELLO_STATE, "state")  # reports come ten times per second
    for talk, silent_s in ((deaf, 4.0), (flying, 2.0)):
        talk.command = MOVING
        assert len(set(talk.sends(silent_s))) == 1


# Requests, of a drone on datagrams.


@pytest.fixture
def tello():
    return ClientTalk(Tello)


@pytest.fixture
def flying(tello):
    tello.connect(b"ok")
    tello.hear(TELLO_STATE, "state")
    return tello


def test_a_robot_that_answers_and_whose_reports_do_not_arrive_is_named(tello):
    tello.connect(b"ok")
    tello.run(3.1)
    assert tello.session.reports.facts.get(Obstacle.BLOCKED) == {"peer": "robot", "ports": str(Tello.state.port)}
    for heard in ([], [(b"ok", "robot"), (TELLO_STATE, "state")]):
        for data, link in heard:
            tello.hear(data, link)
        tello.run(4.0)
        assert tello.session.reports.facts.get(Obstacle.BLOCKED) is None, "it is switched off"


def test_reports_to_the_only_port_of_a_robot_that_answers_are_not_blocked():
    talk = ClientTalk(type("Buoy", (Lander,), {"name": "buoy", "control": Udp(1)}))
    talk.connect(b"yes\n")
    talk.run(3.1)
    assert talk.session.reports.facts.get(Obstacle.BLOCKED) is None


@pytest.fixture
def silent(flying):
    """A robot that was heard, has been silent, and is greeted again."""
    flying.run(3.1)
    return flying


DONE = ("takeoff", True, "ok")


def test_over_datagrams_neutral_is_sent_before_and_during_the_greeting(tello):
    neutral = b"rc 0 0 0 0"
    assert data_of(tello.session.opened(tello.now_s)) == [neutral, b"command"]
    assert tello.sends(0.51) == [neutral, b"command"]
    assert data_of(tello.hear(b"ok", ONE)) == [neutral]


def test_a_silent_robot_is_greeted_again_over_datagrams(flying):
    flying.ask("takeoff")
    actions = flying.run(3.1)
    assert notes(actions, LOST) == ["robot was silent for 3.0 s."]
    assert b"command" in data_of(actions)
    assert flying.session.state == GREETING
    assert [is_success for _, is_success, _ in outcomes(actions)] == [False]


def test_requests_are_sent_once_and_answered_in_order(flying):
    assert data_of(flying.ask("takeoff")) == [b"takeoff"]
    assert outcomes(flying.ask("takeoff"))[0][1] is False, "one at a time"
    flying.ask("land")
    assert not outcomes(flying.hear(b"error Motor stop")), "of either"
    assert not outcomes(flying.hear(b"ok"))
    late = [each for _ in range(21) for each in (*flying.run(1.0), *flying.hear(STANDING, "state"))]
    assert ("land", True, "It stands, by its reports.") in outcomes(late)


@pytest.mark.parametrize(("is_flying", "name", "state"), [(False, "land", "stands"), (True, "takeoff", "flies")])
def test_a_refusal_of_what_is_done_already_says_so(flying, is_flying, name, state):
    flying.session.requests.reported(is_flying, flying.now_s)
    flying.ask(name)
    ((_, is_success, sentence),) = outcomes(flying.hear(b"error"))
    assert not is_success
    assert sentence.startswith(f"It {state} already, by its reports: the drone answered 'error'")


def test_a_takeoff_is_refused_until_the_landing_is_answered(flying):
    flying.ask("land")
    assert outcomes(flying.ask("takeoff")) == [("takeoff", False, "land is pending.")]
    flying.hear(b"ok")
    assert data_of(flying.ask("takeoff")) == [b"takeoff"]


def test_a_takeoff_is_refused_while_the_limits_land(flying):
    """A robot answers the landing once it is on the ground, after it has refused the takeoff."""
    flying.rank = Rank.LANDING
    assert b"land" in data_of(flying.run(0.5))
    assert outcomes(flying.ask("takeoff")) == [("takeoff", False, "land is pending.")]
    flying.rank = Rank.NEUTRAL
    flying.hear(b"ok")
    flying.run(2.5)
    assert data_of(flying.ask("takeoff")) == [b"takeoff"]


def test_a_request_without_an_answer_or_a_link_and_a_stale_one_fail(flying):
    flying.session.fresh_since_s = flying.now_s
    assert outcomes(flying.ask("takeoff", 0.0))[0][1] is False
    flying.ask("land", 0.0)
    late = []
    for _ in range(21):
        late += flying.run(1.0)
        flying.hear(TELLO_STATE, "state")
    assert [name for name, is_success, _ in outcomes(late) if not is_success] == ["land"]
    flying.session.lost(flying.now_s)
    assert outcomes(flying.ask("takeoff"))[0][1] is False


class Lander(Robot):
    """Robot on a stream that answers requests."""

    name, control = "lander", LINES
    requests = MappingProxyType({name: Request(b"%a\n" % name, timeout_s=1.0) for name in ("takeoff", "land")})

    def decode_report(self, data):
        return Telemetry(velocity=STILL) if data == b"report\n" else Answer(True)

    def encode_command(self, command):
        return b"v %g\n" % command.forward


class Unanswering(Lander):
    """Robot whose requests have no answer."""

    name = "unanswering"
    requests = MappingProxyType({"takeoff": b"takeoff\n", "land": b"land\n"})


@pytest.mark.parametrize(("robot", "limit_s"), [(Lander, 1.0), (Unanswering, EMERGENCY_AGE_S)])
def test_a_request_but_land_is_not_sent_after_its_outcome(robot, limit_s):
    talk = ClientTalk(robot)
    talk.connect(b"report\n")
    takeoff, land = (sent(talk.ask(name))[0] for name in ("takeoff", "land"))
    assert (takeoff.until_s, land.until_s) == (talk.now_s + limit_s, math.inf)
    assert (takeoff.outlasts_stalls, land.outlasts_stalls) == (False, True)
    names = [each.request and each.request.name for each in (takeoff, land)]
    assert names == ([None, None] if robot is Lander else ["takeoff", "land"]), "whose outcome is that they were sent"
    assert {each.until_s for each in sent(talk.run(0.5))} == {None}, "commands"


def test_a_lost_land_is_sent_again_by_another_call(flying):
    first, second = Asked("land"), Asked("land")
    flying.session.ask(first, flying.now_s)
    again = flying.session.ask(second, flying.now_s)
    assert data_of(again) == [b"land"]
    (ended,) = (each for each in again if isinstance(each, Outcome))
    assert ended.request is first
    (landed,) = (each for each in flying.hear(b"ok") if isinstance(each, Outcome))
    assert landed.request is second
    assert landed.is_success
    flying.ask("takeoff")
    assert not outcomes(flying.hear(b"ok")), "of the other land"


@pytest.mark.parametrize("when", ["flying", "silent"])
@pytest.mark.parametrize(("age_s", "is_cut"), [(EMERGENCY_AGE_S - 0.1, True), (EMERGENCY_AGE_S + 0.1, False)])
def test_an_emergency_needs_no_reports_and_outlasts_a_short_stall(when, age_s, is_cut, request):
    talk = request.getfixturevalue(when)
    talk.session.fresh_since_s = talk.now_s
    actions = talk.ask("emergency", talk.now_s - age_s)
    assert data_of(actions) == [b"emergency"] * is_cut
    for each in sent(actions):
        assert each.outlasts_stalls, "also if the stall begins before it is sent"
        assert each.until_s == talk.now_s - age_s + EMERGENCY_AGE_S
    assert [is_success for _, is_success, _ in outcomes(actions)] == [False] * (not is_cut)


@pytest.mark.parametrize("when", ["tello", "silent"])
def test_requests_but_land_are_refused_until_the_robot_is_heard(when, request):
    talk = request.getfixturevalue(when)
    if when == "tello":
        talk.connect()
    refused = talk.ask("takeoff")
    assert not sent(refused)
    assert [is_success for _, is_success, _ in outcomes(refused)] == [False]
    assert data_of(talk.ask("land")) == [b"land"]
    talk.hear(b"ok")
    talk.hear(b"ok")
    assert data_of(talk.ask("takeoff")) == [b"takeoff"]


def test_a_land_during_the_greeting_times_out_and_takes_no_answer_of_it(silent):
    silent.ask("land")
    assert not outcomes(silent.hear(b"ok")), "of the greeting"
    silent.hear(TELLO_STATE, "state")
    assert not outcomes(silent.run(2.9))
    silent.run(10.0)
    assert silent.session.state == GREETING
    silent.ask("land")
    late = silent.run(20.6)
    assert silent.session.state == GREETING
    assert [name for name, is_success, _ in outcomes(late) if not is_success] == ["land"]


@pytest.mark.parametrize("gap_s", [0.5, 1.5])
def test_an_answer_that_may_be_a_repeats_or_a_landings_is_no_outcome(flying, gap_s):
    """A takeoff right after an outage, in which the greeting was repeated, is answered, and then a landing."""
    flying.run(5.0)
    flying.hear(b"ok")
    flying.hear(STANDING, "state")
    flying.run(gap_s)
    flying.ask("takeoff")
    assert not outcomes(flying.hear(b"ok"))
    actions = []
    for step in range(210):
        flying.rank = Rank.LANDING if 140 < step < 150 else Rank.NEUTRAL
        actions += flying.hear(STANDING, "state") + flying.run(0.1) + (flying.hear(b"ok") if step == 150 else [])
    ((name, is_success, sentence),) = outcomes(actions)
    assert (name, is_success, sentence.endswith("It is unknown whether it executes takeoff.")) == (
        "takeoff",
        False,
        True,
    )


@pytest.mark.parametrize("way", ["late", "silent"])
def test_a_late_answer_is_not_that_of_the_next_request(flying, way):
    flying.ask("takeoff")
    for _ in range(20 if way == "late" else 0):
        flying.hear(TELLO_STATE, "state")
        flying.run(1.0)
    flying.run(0.1 if way == "late" else 3.1)
    flying.hear(b"ok" if way == "silent" else TELLO_STATE, "robot" if way == "silent" else "state")
    flying.ask("land")
    assert not outcomes(flying.hear(b"error Motor stop"))


def test_a_refused_takeoff_of_a_drone_that_answers_commands_is_no_success(flying):
    for _ in range(3):
        assert not outcomes(flying.hear(b"ok"))
    flying.ask("takeoff")
    assert not outcomes(flying.hear(b"ok"))
    assert [is_success for _, is_success, _ in outcomes(flying.hear(b"error Motor stop"))] == [False]
    flying.run(2.1)  # without answers: they have ended
    flying.hear(TELLO_STATE, "state")
    flying.ask("takeoff")
    assert outcomes(flying.hear(b"ok")) == [DONE]


def test_a_robot_that_was_not_heard_yet_gets_no_request():
    talk = ClientTalk(type("Unheard", (Tello,), {"name": "unheard", "handshake": lambda _: iter([b"command"])}))
    talk.connect()
    assert talk.session.state == CONNECTED
    assert not sent(talk.ask("takeoff"))
    talk.hear(TELLO_STATE, "state")
    assert sent(talk.ask("takeoff"))


@pytest.mark.parametrize(
    ("greeted_s", "later_s", "expected"), [(0.0, 0.0, [DONE]), (0.7, 0.0, []), (3600.0, 2.1, [DONE])]
)
def test_answers_to_repeats_of_the_greeting_are_those_of_no_request(tello, greeted_s, later_s, expected):
    tello.connect()
    tello.run(greeted_s)
    tello.hear(b"ok")
    tello.run(later_s)
    tello.ask("takeoff")
    assert outcomes(tello.hear(b"ok")) == expected


def test_a_new_stream_carries_no_answer_of_an_earlier_one():
    class Answers(Mute):
        name, topics, requests = "answers", (), {"takeoff": Request(b"up\n", timeout_s=5.0)}

        def handshake(self):
            yield b"hello\n", lambda line: line == b"ok\n"

        def decode_report(self, packet):
            return Answer("")

    talk = ClientTalk(Answers)
    talk.connect()
    talk.run(0.6)
    talk.hear(b"ok\n")
    talk.disconnect()
    talk.connect(b"ok\n")
    talk.ask("takeoff")
    assert outcomes(talk.hear(b"ok\n")) == [DONE]


def test_a_forced_landing_is_requested_each_second(flying):
    flying.rank = Rank.LANDING
    assert flying.sends(2.5).count(b"land") == 3


def lit(end, lamp):
    end.lamps |= lamp if lamp < 4 else {}
    return b"lamps %d\n" % end.lamps


class Lamps(Mute):
    """Robot with two lamps in one number, which needs a login."""

    name, login, lamps = "lamps", "", 0
    requests = MappingProxyType({f"lamp{n}": Request(partial(lit, lamp=n), n / 4, moves=False) for n in (1, 2, 4)})

    def handshake(self):
        yield b"login %s\n" % self.login.encode()


def test_a_request_may_depend_on_what_was_set_before():
    talk = ClientTalk(Lamps)
    talk.connect()
    assert [bytes_of(talk.ask(f"lamp{lamp}")) for lamp in (1, 2)] == [b"lamps 1\n", b"lamps 3\n"]
    for _ in range(2):
        ((name, is_success, sentence),) = outcomes(talk.ask("lamp4"))
        assert (name, is_success) == ("lamp4", False)
        assert ", in lit: TypeError" in sentence
    talk = ClientTalk(type("Silent", (Lamps,), {"name": "silent", "requests": {"dim": Request(lambda _: b"")}}))
    talk.connect()
    sentence = "dim can't be encoded: requests['dim']() has returned no bytes."
    assert outcomes(talk.ask("dim")) == [("dim", False, sentence)]
    with pytest.raises(ValueError, match="for land, and must have bytes"):
        type("Wrong", (Lamps,), {"requests": {"land": Request(lit)}})


@pytest.mark.parametrize("is_file", [False, True])
def test_a_login_is_read_from_what_its_parameter_names(is_file, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOT_LOGIN", "me:secret\n")
    (tmp_path / "login").write_text("me:secret\n")
    talk = ClientTalk(Lamps, login=login_text(str(tmp_path / "login") if is_file else "ROBOT_LOGIN"))
    assert b"login me:secret\n0\n" in bytes_of(talk.connect())
    assert login_text("") == ""
    with pytest.raises(ValueError, match="login must name a file or environment variable") as raised:
        login_text("me:secret")
    assert "secret" not in str(raised.value)


def test_a_login_that_is_refused_is_not_shown():
    class Secured(Lamps):
        def handshake(self):
            yield b"login %s\n" % self.login.encode(), lambda heard: heard == b"welcome\n"

    talk = ClientTalk(Secured, login="me:secret")
    greeting = [each.data for each in sent(talk.connect())]
    assert [isinstance(data, Secret) for data in greeting] == [b"secret" in data for data in greeting]
    assert b"secret" in b"".join(greeting)
    talk.hear(b"denied\n")
    (sentence,) = notes(talk.run(0.6), UNGREETED)
    assert sentence.startswith("robot does not answer a step of the handshake as expected: it has sent b'denied\\n'")


# The robot's session.


class RobotTalk(SessionTalk):
    """Server or emulated robot, with clients played by the test."""

    def __init__(self, robot, **options):
        self.telemetry = Telemetry((1.0, 2.0, 0.0), 0.5, BodyVelocity(0.2), 12.0, 0.8, 0.7)
        super().__init__(RobotClassVehicleSession(robot, PARAMETERS, lambda: self.telemetry, **options))

    def hear(self, data, source=ONE):
        return list(self.session.receive(data, source, self.now_s))


@pytest.fixture
def server():
    talk = RobotTalk(Pioneer)
    talk.session.connected("one", talk.now_s)
    return talk


def test_a_command_is_published_repeated_and_ends_with_neutral(server):
    assert published(server.hear(command(VEL, 300), "one")) == [BodyVelocity(0.3)]
    commands = published(server.run(2.0))
    assert commands[-1] == BodyVelocity()
    assert set(commands[:-1]) == {BodyVelocity(0.3)}
    assert not published(server.run(5.0)), "neutral is repeated by the publisher"


def test_neutral_is_published_when_a_client_disconnects(server):
    server.hear(command(VEL, 300), "one")
    assert published(server.session.disconnected("one", "It has closed.", server.now_s)) == [BodyVelocity()]


def test_neutral_follows_a_command_in_front_of_invalid_data(server, monkeypatch):
    monkeypatch.setattr(Pioneer, "decode_command", lambda _, data: 1 // 0 if data == packet(0) else BodyVelocity(0.3))
    actions = server.hear(command(VEL, 300) + packet(0), "one")
    assert published(actions) == [BodyVelocity(0.3), BodyVelocity()]
    assert actions[-1] == Close("one")


def test_what_a_description_rejects_on_a_line_is_skipped(monkeypatch):
    talk = RobotTalk(Pioneer, is_body=True, is_line=True)
    talk.session.connected("tty", talk.now_s)
    noise = command(VEL, 200)[:-1] + b"\0" + packet(VEL) * 3  # without a number
    actions = talk.hear(noise + command(VEL, 300), "tty")
    assert published(actions) == [BodyVelocity(0.3)]
    assert not [each for each in actions if isinstance(each, Close)]
    assert talk.session.state == SERVING
    talk.hear(packet(0)[:-1], "tty")
    assert not [each for each in talk.run(100.0) if isinstance(each, Close)], "a line has no timeout"


@pytest.mark.parametrize(
    ("wrong", "reason"), [(command(VEL, 200)[:-1] + b"\0", "checksum"), (b"\xaa" * 9, "begins so")]
)
def test_the_robot_s_end_names_bytes_of_a_client_that_are_no_packet(server, wrong, reason):
    (sentence,) = [each.sentence for each in server.hear(wrong, "one") if isinstance(each, Note) and each.sentence]
    assert f"{len(wrong)} bytes of one are no packet: {wrong[:8].hex(' ')}" in sentence
    assert reason in sentence
    assert published(server.hear(command(VEL, 300), "one")) == [BodyVelocity(0.3)]


def test_a_simulated_robot_keeps_moving_until_its_watchdog_stops_it():
    talk = RobotTalk(Pioneer, is_body=True)
    talk.session.connected("one", talk.now_s)
    talk.hear(command(VEL, 300), "one")
    assert not published(talk.session.disconnected("one", "It was killed.", talk.now_s))
    assert published(talk.run(1.0))[-1] == BodyVelocity()


def test_an_emulated_drone_that_lands_itself_does_so_without_commands():
    world = emulator._World(Tello, Cancellation())
    world.session = SimpleNamespace(received_s=None)
    world.body.begin_in_the_air()
    for world.clock.latest_s, received_s, phase in ((14.0, 10.0, FOLLOWS), (24.0, None, FOLLOWS), (26.0, None, LANDS)):
        world.session.received_s = received_s
        world.step(0.02)
        assert world.body.phase == phase


def test_reports_over_datagrams_end_when_the_client_falls_silent():
    talk = RobotTalk(Tello)
    talk.hear(b"command")
    reports = sent(talk.run(600.0))
    assert len(reports) in range(48, 52), "ten per second, for silence_warning"
    assert talk.session.state == SERVING
    talk.hear(b"rc 0 0 0 0")
    assert len(sent(talk.run(1.0))) in range(9, 12), "without another greeting"


def test_a_stall_of_the_server_is_no_silence_of_its_client():
    talk = RobotTalk(Tello)
    talk.hear(b"command")
    talk.run(4.0)
    talk.now_s += 10.0
    talk.session.resume(talk.now_s)
    assert sent(talk.run(1.0))


def test_reports_continue_to_silent_stream_and_simulated_robot_clients():
    stream, body = RobotTalk(Pioneer), RobotTalk(Tello, is_body=True)
    stream.session.connected(ONE, stream.now_s)
    stream.hear(packet(0) + packet(1) + packet(2) + packet(OPEN))
    body.hear(b"command")
    for talk in (stream, body):
        talk.run(60.0)
        assert len(sent(talk.run(1.0))) in range(9, 12)


def test_a_robot_reports_at_its_own_rate():
    talk = RobotTalk(type("Swift", (Tello,), {"report_rate": 40.0}))
    talk.hear(b"command")
    assert len(sent(talk.run(1.0))) in range(39, 42)


def test_the_greeting_is_answered_and_telemetry_follows_it(server):
    assert bytes_of(server.run(0.5)) == b""
    assert bytes_of(server.hear(packet(0), "one")) == packet(0)
    server.hear(packet(1) + packet(2) + packet(OPEN), "one")
    told = sent(server.run(0.5))
    assert len(told) in (5, 6)
    heard = Pioneer().decode_report(told[0].data)
    assert heard.position == pytest.approx((1.0, 2.0, 0.0), abs=1e-3)


def test_another_client_is_refused_until_the_first_one_is_silent(server):
    server.hear(command(VEL, 300), "one")
    assert any(isinstance(each, Close) and each.peer == "two" for each in server.session.connected("two", 100.0))
    server.run(6.0)
    taken = server.session.connected("three", server.now_s)
    assert [each.peer for each in taken if isinstance(each, Close)] == ["one"]
    assert (server.session.state, server.session.peer) == (SERVING, "three")


@pytest.mark.parametrize(("name", "is_called"), [("land", True), ("emergency", True), ("takeoff", False)])
def test_after_a_stall_only_requests_that_end_a_flight_are_called(name, is_called):
    talk = RobotTalk(Tello)
    talk.session.resume(talk.now_s)
    actions = talk.hear(name.encode())
    assert [each.name for each in actions if isinstance(each, Call)] == [name] * is_called
    assert [each.data[:5] for each in sent(actions)] == [b"error"] * (not is_called)


def test_after_a_stall_only_neutral_is_accepted(server):
    server.hear(command(VEL, 300), "one")
    server.now_s += 5.0
    assert published(server.session.resume(server.now_s)) == [BodyVelocity()]
    assert not published(server.hear(command(VEL, 300), "one"))
    assert published(server.hear(command(VEL, 0), "one")) == [BodyVelocity()]
    server.now_s += SETTLING_S
    assert published(server.hear(command(VEL, 300), "one")) == [BodyVelocity(0.3)]


def test_a_request_is_called_and_answered_to_its_client():
    talk = RobotTalk(Tello, report_port=8890, allowed_peers=AllowedPeers(["127.0.0.1"]))
    (call,) = [each for each in talk.hear(b"takeoff") if isinstance(each, Call)]
    assert call.name == "takeoff"
    (answer,) = sent(talk.session.answered(call.tag, False, "it is flying", talk.now_s))
    assert (answer.data, answer.to) == (b"error it is flying", ONE)
    assert not sent(talk.session.answered((OTHER, "takeoff"), True, "", talk.now_s)), "it has left"


def test_the_state_is_sent_to_the_state_port_of_a_greeting_client():
    talk = RobotTalk(Tello, report_port=8890)
    assert not sent(talk.hear(b"rc 0 0 0 0") + talk.run(0.5))
    assert sent(talk.hear(b"command"))[0].data == b"ok"
    assert {each.to for each in sent(talk.run(0.5))} == {("127.0.0.1", 8890)}


def test_datagrams_of_other_peers_are_refused():
    talk = RobotTalk(Tello, allowed_peers=AllowedPeers(["10.0.0.0/8"]))
    assert not published(talk.hear(b"rc 100 0 0 0"))
    allowed = RobotTalk(Tello)
    allowed.hear(b"rc 100 0 0 0")
    assert not published(allowed.hear(b"rc 0 100 0 0", OTHER)), "one client at a time"


def test_a_robot_without_a_watchdog_keeps_a_command_while_anything_arrives():
    talk = RobotTalk(Create2)
    talk.session.connected("one", talk.now_s)
    talk.hear(bytes([131, 145, 0, 200, 0, 200]), "one")
    for _ in range(10):
        assert set(published(talk.run(0.4))) == {BodyVelocity(0.2)}
        talk.hear(bytes([142, 35]), "one")
    assert published(talk.run(1.0))[-1] == BodyVelocity()


def test_a_packet_may_be_a_velocity_and_have_an_answer():
    talk = RobotTalk(RoboMaster, report_port=40924)
    talk.session.connected("127.0.0.1:9000", talk.now_s)
    talk.hear(b"command;" + RoboMaster().encode_command(BodyVelocity()), "127.0.0.1:9000")
    actions = talk.hear(b"chassis speed x 0.5 y 0 z 0;", "127.0.0.1:9000")
    assert published(actions) == [BodyVelocity(0.5)]
    assert data_of(actions) == [b"ok;"]
    talk.hear(b"chassis push position on pfreq 10 attitude on afreq 10;", "127.0.0.1:9000")
    assert {each.to for each in sent(talk.run(0.5))} == {("127.0.0.1", 40924)}


def test_the_client_that_asks_for_video_is_its_viewer():
    talk = RobotTalk(Tello)
    viewers = []
    for packet_ in (b"command", b"streamon", b"rc 0 0 0 0", b"streamoff"):
        talk.hear(packet_)
        viewers.append(talk.session.viewer)
    assert viewers == ["", "127.0.0.1", "127.0.0.1", ""]


def test_video_is_asked_for_and_its_answer_is_that_of_no_request(tello):
    assert not sent(tello.session.ask_video(tello.now_s)), "before the greeting"
    tello.connect(b"ok")
    assert bytes_of(tello.session.ask_video(tello.now_s)) == b"streamon"
    tello.ask("takeoff")
    assert not sent(tello.session.ask_video(tello.now_s)), "while an answer is awaited"
    assert not outcomes(tello.hear(b"ok")), "of the video"


def test_an_invalid_report_by_datagram_leaves_the_stream_open():
    talk = ClientTalk(RoboMaster)
    talk.connect()
    assert counters(talk.hear(b"position a b;", "state")) == ["rejected_input"]
    assert talk.session.has_peer


# The emulator's body.


def run(body, seconds):
    for _ in range(round(seconds / 0.02)):
        body.step(0.02)


def test_a_body_on_wheels_follows_at_once():
    body = EmulatedBody(Pioneer)
    body.wanted = BodyVelocity(0.5, turn=0.1)
    run(body, 3.0)
    assert body.is_moving
    assert 1.0 < body.x < 1.5
    assert body.y > 0.0 < body.heading
    body.wanted = BodyVelocity()
    run(body, 3.0)
    assert not body.is_moving


@pytest.mark.parametrize(("charge", "voltage"), [(1.0, 16.5), (0.5, 14.85), (0.0, 13.2)])
def test_the_battery_of_a_body_has_the_range_of_its_robot(charge, voltage):
    body = EmulatedBody(type("Own", (Pioneer,), {"battery_v": (13.2, 16.5)}))
    body.time_s = (1.0 - charge) * BATTERY_S
    assert (body.telemetry().charge, body.telemetry().voltage) == pytest.approx((charge, voltage))


def test_a_body_that_flies_takes_off_first():
    body = EmulatedBody(Tello)
    body.wanted = BodyVelocity(0.5)
    run(body, 3.0)
    assert body.x == body.z == 0.0
    assert body.request("takeoff") == ""
    run(body, 5.0)
    assert body.z >= HOVER_HEIGHT
    assert body.x > 0.5
    assert body.request("takeoff") != ""
    assert body.request("land") == ""
    run(body, 5.0)
    assert body.telemetry().height == 0.0


def test_what_a_class_keeps_goes_on_with_the_next_client(server):
    server.session._clients["one"].handler.robot.x = 7
    server.session.disconnected("one", "It has closed.", server.now_s)
    server.session.connected("two", server.now_s)
    assert server.session._clients["two"].handler.robot.x == 7


def test_commands_go_on_at_their_rate_after_late_turns(driven):
    driven.now_s += 1.0
    driven.session.tick(driven.now_s)
    assert driven.session.due_s == pytest.approx(driven.now_s + 1 / driven.session._parameters.rate)
