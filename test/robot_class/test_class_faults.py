# SPDX-License-Identifier: Apache-2.0
"""Faults of a robot's class in its bridge: errors, values that can't be, misspelt attributes. Pure, by a fake clock."""

import copy
import math
import re
from itertools import permutations

import pytest
from robot_class_talk import ClientTalk, closes, data_of
from sensor_msgs.msg import Range
from session_talk import notes, published
from std_msgs.msg import Float32

from drone_bridge.robot_class import Answer, BodyVelocity, Delimited, Robot, Tcp, Telemetry, Udp
from drone_bridge.robot_class.client_session import CONNECTED, GREETING, WAITING, WITHHELD
from drone_bridge.robot_class.robot import misspelt, unstoppable
from drone_bridge.robot_class.telemetry import possible_telemetry
from drone_bridge.robot_class.vehicle import emulator, operator
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.clients import LOST
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.wire.outgoing import UNENCODABLE

TIMEOUT_S = 3.0  # of the link


class Meter(Robot):
    """Robot that reports a voltage in each line."""

    name, control = "meter", Tcp(1, Delimited(b"\n"))
    topics = ("battery_state", "near: sensor_msgs/Range")
    error, fails = None, ()

    def encode_command(self, velocity):
        if velocity in self.fails:
            raise copy.copy(self.error)  # without the traceback of earlier ones
        return b"%g\n" % velocity.forward

    def decode_report(self, packet):
        if self.error and packet == b"bad\n":
            raise copy.copy(self.error)
        return Telemetry(voltage=float(packet), extra={"near": Float32()} if packet == b"7\n" else {})

    def encode_goodbye(self):
        return b"bye\n"


class Datagrams(Meter):
    """The same one over UDP."""

    name, control = "datagrams", Udp(1, Delimited(b"\n"))


class Numbered(Meter):
    """One without last words, as its packets are numbered."""

    def encode_command(self, velocity):
        self.number = getattr(self, "number", 0) + 1
        return super().encode_command(velocity) + b"%d\n" % self.number


DRIVE = BodyVelocity(0.5)


def talk_of(robot, is_line=False, **attributes):
    """Return the talk of a connected robot that is driven."""
    talk = ClientTalk(type("Mine", (robot,), {"name": "mine", **attributes}), is_line=is_line)
    talk.rank, talk.command = Rank.COMMAND, DRIVE
    talk.began = talk.connect()
    return talk


ERRORS = [ValueError("no checksum"), KeyError("x"), OSError("disk"), ZeroDivisionError(), RuntimeError("bug")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("robot", [Meter, Datagrams])
def test_packets_that_raise_an_error_are_dropped_and_named(robot, error):
    talk = talk_of(robot, error=error)
    actions = talk.hear(b"bad\n") + talk.hear(b"bad\n") + talk.hear(b"12\n")
    said = notes(actions, "rejected_input")
    assert re.search(rf"test_class_faults.py:\d+, in decode_report: .*{error}.*b'bad\\n'", said[0])
    assert said[1:] == said[:1]
    assert all(each.is_ongoing for each in actions if getattr(each, "counter", "") == "rejected_input")
    assert [each.meaning.voltage for each in published(actions)] == [12.0]
    assert talk.session.state == CONNECTED


@pytest.mark.parametrize("error", [None, ValueError("no checksum")], ids=repr)
@pytest.mark.parametrize("robot", [Meter, Datagrams])
def test_packets_of_which_none_is_a_report_are_named_and_end_a_stream(robot, error):
    talk = talk_of(robot, error=error, **({} if error else {"decode_report": lambda _, packet: None}))
    turns = [talk.hear(b"bad\n") + talk.run(0.1) for _ in range(35)]
    assert [number for number, each in enumerate(turns) if closes(each)] == ([30] if robot is Meter else [])
    assert re.search(
        r"no checksum.*b'bad" if error else r"None for b'bad",
        talk.session.reports.facts.get(Obstacle.NO_REPORT)["reason"],
    )
    lost = [sentence for each in turns for sentence in notes(each, LOST)]
    assert [bool(re.search("no report: |no packet: ", each)) for each in lost] == [True], "it was not silent"
    type(talk.session.sender.end.robot).decode_report = Meter.decode_report
    talk.connect(b"12\n")
    assert talk.session.reports.facts.get(Obstacle.NO_REPORT) is None


@pytest.mark.parametrize("greeting", [b"hi\n", b"ok\n"])
@pytest.mark.parametrize("error", [None, NameError("packt")], ids=repr)
@pytest.mark.parametrize(("robot", "is_line"), [(Meter, False), (Meter, True), (Datagrams, False)])
def test_a_robot_is_not_moved_while_none_of_its_reports_is_decoded(robot, is_line, error, greeting):
    """However often it is greeted, and whether the answer to the greeting can be decoded. But it is landed."""

    def decode(robot, packet):
        if packet == b"bad\n" and error:
            raise copy.copy(error)
        return {b"bad\n": None, b"ok\n": Answer("")}.get(packet) or Telemetry(voltage=float(packet))

    handshake = lambda _: iter([(b"hello\n", lambda packet: packet == greeting)])  # noqa: E731
    requests = {"dance": b"dance\n", "land": b"land\n"}
    talk = talk_of(robot, is_line, handshake=handshake, decode_report=decode, requests=requests)
    actions = talk.hear(b"bad\n")
    for number in range(250):
        actions += talk.connect() if talk.session.state == WAITING else []
        heard = greeting if talk.session.state == GREETING else b"bad\n" * (number % 15 == 0)
        actions += (talk.hear(heard) if heard else []) + talk.run(0.1)
    assert b"0.5\n" not in data_of(actions)
    assert data_of(actions).count(b"hello\n") > 5, "after each silence"
    assert any("neutral until a report" in each for each in notes(actions, WITHHELD))
    assert data_of(talk.ask("dance") + talk.ask("land")) == [b"land\n"]
    talk.rank = Rank.LANDING
    assert b"0.5\n" in talk.sends(0.2)
    talk.rank = Rank.COMMAND
    talk.hear(b"12\n")
    assert b"0.5\n" in talk.sends(1.1)


@pytest.mark.parametrize("robot", [Meter, Datagrams])
def test_a_silent_robot_on_a_stream_is_moved_after_an_answer_past_its_greeting(robot):
    """Although its reports are rejected over a stream, or blocked."""
    decode = lambda _, packet: Answer("") if packet == b"ok\n" else None  # noqa: E731
    handshake = lambda _: iter([(b"hello\n", lambda packet: packet == b"ok\n")])  # noqa: E731
    talk = talk_of(robot, handshake=handshake, decode_report=decode)
    assert b"0.5\n" not in talk.sends(0.4)
    talk.hear(b"ok\n")
    assert (b"0.5\n" in talk.sends(0.2)) is (robot is Datagrams)
    talk.hear(b"bad\n")
    talk.hear(b"ok\n")
    assert (b"0.5\n" in talk.sends(0.2)) is (robot is Meter)


def test_a_robot_that_is_switched_off_is_not_said_to_send_packets():
    talk = talk_of(Datagrams, decode_report=lambda _, packet: None)
    talk.hear(b"bad\n")
    talk.run(TIMEOUT_S + 0.1)
    assert talk.session.reports.facts.get(Obstacle.NO_REPORT)
    talk.run(2 * TIMEOUT_S)
    assert talk.session.reports.facts.get(Obstacle.NO_REPORT) is None


@pytest.mark.parametrize("robot", [Meter, Datagrams])
def test_an_answer_in_the_greeting_need_not_be_a_report(robot):
    greeting = lambda _: iter([(b"hello\n", lambda line: line == b"hi\n")])  # noqa: E731
    talk = talk_of(robot, handshake=greeting)
    assert not notes(talk.hear(b"hi\n"), "rejected_input")
    assert talk.session.state == CONNECTED


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_velocity_that_raises_an_error_becomes_neutral(error):
    talk = talk_of(Meter, error=error, fails=(DRIVE,))
    talk.hear(b"12\n")
    actions = talk.run(1.0)
    assert set(data_of(actions)) == {b"0\n"}
    first, *others = notes(actions, UNENCODABLE)
    assert re.search(r"BodyVelocity\(.*in encode_command", first)
    assert set(others) == {first}
    assert all(each.is_ongoing for each in actions if getattr(each, "counter", "") == UNENCODABLE)
    assert talk.session.state == CONNECTED


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("robot", [Meter, Datagrams])
def test_without_neutral_the_last_words_are_sent_and_the_link_ends(robot, error):
    talk = talk_of(robot)
    talk.hear(b"12\n")
    talk.run(0.2)
    assert talk.session.last_words()
    type(talk.session.sender.end.robot).error, type(talk.session.sender.end.robot).fails = (
        error,
        (DRIVE, BodyVelocity()),
    )
    actions = talk.run(1.0)
    assert data_of(actions)[:2] == [b"0\n", b"bye\n"]
    assert any(each.startswith("Neutral") for each in notes(actions, UNENCODABLE))
    assert closes(actions) == (robot is Meter) == (not talk.session.is_open)


def test_without_neutral_and_last_words_a_stream_is_closed():
    talk = talk_of(Numbered)
    talk.hear(b"12\n")
    talk.run(0.2)
    assert not talk.session.last_words()
    mine = type(talk.session.sender.end.robot)
    mine.error, mine.fails = ERRORS[0], (DRIVE, BodyVelocity())
    assert closes(talk.run(1.0))


def test_without_neutral_a_robot_on_datagrams_is_greeted_until_it_has_it():
    last_words = lambda _: (b"halt\n", b"bye\n")  # noqa: E731
    talk = talk_of(Datagrams, error=ERRORS[0], handshake=lambda _: iter([b"hello\n"]), last_words=last_words)
    mine = type(talk.session.sender.end.robot)
    mine.fails = (DRIVE, BodyVelocity())
    sends = talk.sends(2.1)
    assert sends[:2] == [b"halt\n", b"bye\n"]
    assert sends.count(b"hello\n") == 1
    assert talk.session.state == GREETING
    mine.fails = ()
    talk.run(1.1)
    assert talk.session.state == CONNECTED


@pytest.mark.parametrize("main", [unstoppable, emulator.main, operator.main])
def test_a_class_that_can_t_be_created_is_named_with_its_line(main, capfd):
    def fail(_):
        raise OSError("no camera")

    mine = type("Mine", (Meter,), {"name": "mine", "__init__": fail})
    reason = main(mine) if main is unstoppable else (main(mine, ["--port", "41231"]), capfd.readouterr().err)[1]
    assert re.search(r"Mine can't be created: test_class_faults.py:\d+, in fail: OSError: no camera\.\n?$", reason)
    assert "Traceback" not in reason


WRONG = [
    ({"charge": 12}, "has charge=12, which must be a share from 0 to 1"),
    ({"charge": -1}, "charge"),
    ({"charge": "full"}, "charge"),
    ({"voltage": -1}, "voltage"),
    ({"voltage": 7400}, "has voltage=7400, which must be a number of volts, from 0 to 1000"),
    ({"position": (1.0, 2.0)}, "has position=(1.0, 2.0), which must be three numbers"),
    ({"position": (1.0, 2.0, None)}, "position"),
    ({"position": 5}, "position"),
    ({"position": (math.nan, 0.0, 0.0)}, "has position=(nan, 0.0, 0.0), which is not finite"),
    *(({"position": where}, "which is not finite") for where in permutations((math.nan, 0.0, 1.0))),
    ({"velocity": BodyVelocity(math.inf)}, "which is not finite"),
    ({"yaw": math.nan}, "yaw=nan"),
    ({"yaw": "north"}, "yaw"),
    ({"roll": 45}, "roll"),
    ({"rates": (1.0, 2.0, 3.0, 4.0)}, "rates"),
    ({"velocity": (0.1, 0.0)}, "velocity"),
    ({"velocity": BodyVelocity(300.0)}, "which must be a BodyVelocity of at most 100 m/s and rad/s"),
    ({"is_flying": 2}, "is_flying"),
    ({"disobeys": True}, "disobeys"),
    ({"image": "jpeg"}, "image"),
    ({"extra": {"far": Range()}}, "extra['far'], which is none of its topics: near"),
    ({"extra": {"near": Float32()}}, "has std_msgs/Float32 for its topic near, which must be sensor_msgs/Range"),
    ({"extra": [Range()]}, "extra"),
    ({"scan": (1.0, -1.0)}, "has scan=(1.0, -1.0), which must be distances"),
    ({"scan": 1.0}, "scan"),
    ({"scan": (1.0,)}, "has a scan of 1 distances, and its lidar has 0 rays"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG)
def test_a_value_that_can_t_be_is_left_out_and_named(fields, words):
    telemetry, (left_out,) = possible_telemetry(Telemetry(**{"height": 1, **fields}), Meter.own_topics)
    assert words in left_out
    assert telemetry.height == 1.0
    assert not any(getattr(telemetry, name) for name in fields)


RIGHT = [
    ({"charge": 1.02}, {"charge": 1.0}),
    ({"charge": math.nan}, {"charge": None}),
    ({"voltage": math.inf}, {"voltage": None}),
    ({"height": 1}, {"height": 1.0}),
    ({"position": (1, 2, 0)}, {"position": (1.0, 2.0, 0.0)}),
    ({"velocity": BodyVelocity(1)}, {"velocity": BodyVelocity(1.0)}),
    ({"is_flying": 1}, {"is_flying": True}),
    ({"image": bytearray(b"jpeg")}, {"image": b"jpeg"}),
    ({"extra": {"near": None}}, {"extra": {}}),
    ({"disobeys": "a\nb\udcff"}, {"disobeys": r"a\nb\udcff"}),
    ({"disobeys": "x" * 200}, {"disobeys": "x" * 100 + "..."}),
]


@pytest.mark.parametrize(("fields", "read"), RIGHT)
def test_a_value_that_can_be_is_converted_to_its_type(fields, read):
    telemetry, left_out = possible_telemetry(Telemetry(**fields), Meter.own_topics)
    assert not left_out
    assert repr({name: getattr(telemetry, name) for name in read}) == repr(read)


def test_a_message_of_a_wrong_type_is_named_when_it_is_made():
    talk = talk_of(Meter)
    actions = talk.hear(b"7\n")
    assert "decode_report() has std_msgs/Float32 for its topic near" in notes(actions, "rejected_input")[0]
    assert [each.meaning.voltage for each in published(actions)] == [7.0]


MISSPELT = {"max_speed": "max_speeds", "link_timeout": "link_timeout_s", "hoovers": "hovers", "speeds": "", "step": ""}


@pytest.mark.parametrize(("name", "known"), MISSPELT.items())
def test_an_attribute_with_nearly_a_known_name_is_named(name, known):
    found = list(misspelt(type("Mine", (Meter,), {"name": "mine", name: 1.0})))
    assert found == [f"Mine.{name} is not used. Name it {known}, or _{name} if it is your own."] * bool(known)


def test_a_latched_topic_that_is_none_of_its_own_is_named():
    assert [*misspelt(type("Mine", (Meter,), {"name": "mine", "latched": ("neer", "near")}))] == [
        "Mine.latched has 'neer', which is none of its own topics."
    ]


def test_an_attribute_beside_the_known_one_and_one_of_another_kind_are_its_own():
    mine = {"rate": 10.0, "gate": 1, "max_speeds": {"x": 1.0}, "_max_speed": 1, "names": "own"}
    assert [*misspelt(type("Mine", (Meter,), {"name": "mine", **mine}))] == []


def test_a_robot_on_datagrams_is_not_said_to_be_connected():
    talk = talk_of(Datagrams)
    assert notes(talk.began + talk.run(2 * TIMEOUT_S), "connections") == ["Sending to robot."]
    assert notes(talk_of(Meter).began, "connections") == ["Connected to robot."]
