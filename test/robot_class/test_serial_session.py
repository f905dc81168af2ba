# SPDX-License-Identifier: Apache-2.0
"""A robot on a serial line, whose board is reset each time that the line is opened, and which may not obey."""

from types import SimpleNamespace

import pytest
from robot_class_talk import ClientTalk, closes, counters, data_of
from session_talk import notes

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Packets, Robot, Serial, Telemetry
from drone_bridge.robot_class.bridge import RobotClassBridge
from drone_bridge.robot_class.client_session import CONNECTED, GREETING, UNGREETED
from drone_bridge.robot_class.obedience import DISOBEYS, OBEYS_S
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.clients import LOST
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import Note


def lines(data):
    if data.startswith(b"\xf2"):
        raise ValueError("it begins with no letter")
    return data.find(b"\n") + 1


class Board(Robot):
    """Board that is greeted, and reports lines of numbers."""

    name, control = "board", Serial(115200, lines)
    requests, stop = {"dock": b"dock\n"}, b"safe\n"

    def handshake(self):
        yield b"hello\n", lambda packet: packet in (b"hello\n", b"")

    def decode_report(self, packet):
        if packet == b"hello\n":
            return None
        charge, _, disobeys = packet.decode().strip().partition(" ")
        return Telemetry(charge=float(charge), disobeys=disobeys)

    def encode_command(self, velocity):
        return b"v %g\n" % velocity.forward


DRIVE = Rank.COMMAND, BodyVelocity(forward=1.0)
LIFTED = b"0.5 a wheel has dropped\n"


@pytest.fixture
def line():
    talk = ClientTalk(Board, is_line=True)
    talk.connect()
    return talk


def decide(talk, rank, command=None):
    """Let the arbiter decide. Without a command, such as on hold, run until it is sent."""
    talk.rank, talk.command = rank, command
    if command is None:
        talk.run(0.1)


@pytest.mark.parametrize("noise", [b"\r\nrst:0x1\r\nready\r\n", b"\xf2\x8c\x00", b"0.5\xff\n", b"x" * 70000])
def test_what_a_description_rejects_is_skipped_on_a_serial_line(line, noise):
    actions = line.hear(noise)
    assert not closes(actions)
    assert "rejected_input" in counters(actions)
    assert line.session.state == GREETING
    line.hear(b"\nhello\n")
    assert line.session.state == CONNECTED
    line.hear(noise)
    line.hear(b"\n0.5\n")
    assert line.session.is_proven
    assert line.session.state == CONNECTED


def test_a_silent_board_is_greeted_again_and_its_line_stays_open(line):
    line.hear(b"hello\n")
    line.hear(b"0.5\n")
    actions = line.run(4.0)
    assert not closes(actions)
    assert line.session.state == GREETING
    assert b"hello\n" in data_of(actions)
    line.hear(b"hello\n")
    assert line.session.state == CONNECTED


@pytest.mark.parametrize(
    ("heard", "shown"),
    [
        ([b"0.5\n"], b"0.5\n"),
        *((each, b"hi\n") for each in ([b"hi\n", b"0.5\n"], [b"0.5\n", b"hi\n"], [b"hi\n", b"\n"])),
    ],
)
@pytest.mark.parametrize("is_made", [False, True])
def test_the_step_that_is_not_answered_is_named_with_what_is_sent_instead(heard, shown, is_made):
    """Reports tell the least."""
    step, shows = (lambda: b"hello\n", "a step") if is_made else (b"hello\n", "b'hello\\n'")
    handshake = lambda _: iter([(step, lambda packet: False)])  # noqa: E731
    line = ClientTalk(type("Other", (Board,), {"name": "other", "handshake": handshake}), is_line=True)
    actions = line.connect(*heard) + line.run(1.0)
    facts = {"peer": "robot", "step": shows, "sent": f"it has sent {shown!r}"}
    assert line.session.reports.facts[Obstacle.UNGREETED] == facts
    assert notes(actions, UNGREETED)[0] == Obstacle.UNGREETED.sentence(**facts)


@pytest.mark.parametrize(
    ("step", "shows"), [(b"hello\n", "b'hello\\n'"), (b"\x02\x49\x00", "02 49 00 ..."), (lambda: b"hello\n", "a step")]
)
def test_a_step_that_nothing_answers_is_named_with_how_often_it_was_sent(step, shows):
    handshake = lambda _: iter([(step, lambda packet: packet == b"hello\n")])  # noqa: E731
    line = ClientTalk(type("Other", (Board,), {"name": "other", "handshake": handshake}), is_line=True)
    line.connect()
    assert not notes(line.run(1.0), UNGREETED), "it may be late"
    said = notes(line.run(1.0), UNGREETED)
    assert said[0].startswith(f"{shows} of the handshake was sent 4 times to robot, and nothing came back")
    assert line.session.reports.facts[Obstacle.UNANSWERED]
    line.hear(b"0.5\n")
    line.run(0.6)
    assert [each for each, facts in line.session.reports.facts.items() if facts] == [Obstacle.UNGREETED]
    line.hear(b"hello\n")
    assert not any(line.session.reports.facts.values())


def test_a_robot_that_was_greeted_before_is_silent_not_unanswered(line):
    line.hear(b"hello\n")
    line.hear(b"0.5\n")
    assert not notes(line.run(9.0), UNGREETED)
    assert line.session.state == GREETING


def test_a_robot_that_reports_why_it_does_not_obey_is_ungreeted_for_that(line):
    line.hear(LIFTED)
    unanswered = "robot does not answer b'hello\\n' of the handshake as expected: it reports that a wheel has dropped"
    assert notes(line.run(1.0), UNGREETED)[0].startswith(unanswered)
    assert line.session.reports.facts.get(Obstacle.UNGREETED)["sent"] == "it reports that a wheel has dropped"
    line.hear(b"hello\n")
    assert line.session.reports.facts.get(Obstacle.UNGREETED) is None


def drives(line, seconds=0.3):
    return b"v 1\n" in line.sends(seconds)


@pytest.fixture
def driven(line):
    """Return a line to a board that is driven, and has been greeted for long."""
    decide(line, *DRIVE)
    line.hear(b"hello\n")
    for _ in range(3):
        line.hear(b"0.5\n")
        assert drives(line, 0.5)
    return line


@pytest.mark.parametrize("obeys_again", [False, True])
def test_only_a_resume_greets_a_robot_that_does_not_obey(driven, obeys_again):
    actions = driven.hear(LIFTED)
    assert data_of(actions) == [b"v 0\n"]
    assert any("a wheel has dropped" in each.sentence for each in actions if isinstance(each, Note))
    assert driven.session.obedience.reason == "a wheel has dropped"
    assert not drives(driven)
    decide(driven, Rank.HOLD)  # by the node
    assert driven.session.obedience.state != DISOBEYS
    driven.hear(b"0.5\n" if obeys_again else LIFTED)
    assert set(driven.sends(1.0)) == {b"v 0\n"}
    decide(driven, *DRIVE)  # a person has resumed it
    assert driven.sends(0.1)[:2] == [b"v 0\n", b"hello\n"]
    assert driven.session.state == GREETING
    driven.hear(b"hello\n")
    driven.hear(LIFTED)  # not judged within a second
    assert drives(driven)
    assert driven.session.obedience.state != DISOBEYS
    driven.run(1.0)
    driven.hear(LIFTED)
    assert driven.session.obedience.state == DISOBEYS


def test_a_robot_that_is_resumed_while_lifted_is_greeted_once(driven):
    driven.hear(LIFTED)
    decide(driven, Rank.HOLD)
    decide(driven, *DRIVE)
    packets = []
    for _ in range(30):
        driven.hear(LIFTED)
        packets += driven.sends(0.1)
    assert packets.count(b"hello\n") == 1
    assert b"v 1\n" not in packets
    assert driven.session.obedience.reason == "a wheel has dropped"
    decide(driven, Rank.HOLD)
    driven.hear(b"0.5\n")  # set down
    assert set(driven.sends(2.0)) == {b"v 0\n"}


def test_a_robot_that_is_back_before_its_hold_is_not_driven(driven):
    driven.hear(LIFTED)
    driven.disconnect()
    driven.connect(b"hello\n", b"0.5\n")
    assert not drives(driven, 1.0)
    assert driven.session.obedience.reason == "a wheel has dropped"
    decide(driven, Rank.HOLD)
    driven.disconnect()
    driven.connect(b"hello\n", b"0.5\n")
    decide(driven, *DRIVE)
    assert set(driven.sends(OBEYS_S - 0.05)) == {b"v 0\n"}, "neutral first, as after each loss"
    assert drives(driven), "a person has resumed it"


def test_a_lost_greeting_of_a_resumed_robot_is_repeated(driven):
    driven.hear(LIFTED)
    decide(driven, Rank.HOLD)
    decide(driven, *DRIVE)
    assert driven.sends(1.7).count(b"hello\n") > 1
    driven.hear(b"hello\n")
    assert drives(driven)


def test_a_hold_of_another_reason_becomes_that_of_the_robot_that_does_not_obey(driven):
    holds = []
    node = SimpleNamespace(has_link=True, _session=driven.session, hold=SimpleNamespace(hold=holds.append))
    node._disobedience = driven.session.obedience.found
    decide(driven, Rank.HOLD)  # as the helm ended
    RobotClassBridge._hold_if_disobedient(node)
    assert holds == []
    driven.hear(LIFTED)
    driven.run(0.1)
    for _ in range(2):  # held once: a person's resume is not undone
        RobotClassBridge._hold_if_disobedient(node)
    assert holds == ["the robot does not obey: a wheel has dropped"]


def test_a_robot_that_does_not_obey_refuses_requests_that_move_it(driven):
    driven.hear(LIFTED)
    (outcome,) = driven.ask("dock")
    assert (outcome.is_success, "a wheel has dropped" in outcome.sentence) == (False, True)


def test_a_robot_that_docks_on_request_is_not_held(line):
    line.hear(b"hello\n")
    line.run(2.0)
    line.hear(b"0.5\n")
    line.ask("dock")
    line.hear(LIFTED)
    assert line.session.obedience.state != DISOBEYS
    decide(line, *DRIVE)
    assert drives(line)
    line.run(1.0)
    line.hear(LIFTED)
    assert line.session.obedience.state == DISOBEYS


class Framed(Board):
    name, control = "framed", Serial(115200, Packets(b"\xfa\xfb", length_at=2, checksum=lambda data: data[-1] == 0))

    def handshake(self):
        yield from ()

    def decode_report(self, packet):
        return Telemetry()


@pytest.mark.parametrize("is_greeted", [True, False])
@pytest.mark.parametrize(
    ("data", "named"), [(b"\xfa\xfb\x02\x01\x07", "checksum"), (b"\xaa\x55\x4d\x00", "no packet begins so")]
)
def test_bytes_that_are_no_packet_are_named_with_their_rate(data, named, is_greeted):
    description = Framed if is_greeted else type("Ungreeted", (Framed,), {"handshake": Board.handshake})
    talk, said = ClientTalk(description, is_line=True), []
    talk.connect()
    for _ in range(40):
        talk.hear(data * 20)
        said += [each.sentence for each in talk.run(0.1) if isinstance(each, Note) and each.sentence]
    assert any(data[:4].hex(" ") in each and named in each and "kB/s" in each for each in said)
    assert named in talk.session.reports.facts[Obstacle.NO_PACKET]["reason"], "for diagnostics"
    assert not any("was silent" in each for each in said)
    talk.hear(b"\xfa\xfb\x02\x01\x00")
    assert talk.session.reports.facts[Obstacle.NO_PACKET] is None


@pytest.mark.parametrize(
    ("base", "packet", "is_noise"),
    [
        (Framed, b"\xfa\xfb\x02\x81\x00", False),
        (Board, b"12.5 V\n", False),
        (Board, b"\xf8\x06\xe0\n", True),
    ],
)
def test_a_rejected_packet_is_noise_only_without_a_checksum_and_as_no_text(base, packet, is_noise):
    methods = {"decode_report": lambda _, packet: {}[packet], "handshake": lambda _: iter(())}
    talk, said = ClientTalk(type("Other", (base,), {"name": "other"} | methods), is_line=True), []
    talk.connect()
    for _ in range(40):
        talk.hear(packet)
        said += [each.sentence for each in talk.run(0.1) if isinstance(each, Note) and each.counter == LOST]
    facts = talk.session.reports.facts
    assert [bool(facts.get(each)) for each in (Obstacle.NO_PACKET, Obstacle.NO_REPORT)] == [is_noise, True]
    assert len(said) == 1
    assert ("baud rate" in said[0], "KeyError" in said[0]) == (is_noise, not is_noise)
