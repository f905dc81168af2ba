# SPDX-License-Identifier: Apache-2.0
"""A robot that a request sets in motion, such as to its dock, which a zero command does not end."""

import pytest
from robot_class_talk import PARAMETERS, ClientTalk, data_of, outcomes

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Answer, Delimited, Request, Robot, Tcp, Telemetry, Udp
from drone_bridge.robot_class.obedience import OBEYS_S
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.session import FINAL_REPEATS

ZERO, FORWARD = BodyVelocity(), BodyVelocity(0.3)


class Cleaner(Robot):
    """Robot that cleans by itself until it hears safe."""

    name, control = "cleaner", Tcp(1, Delimited(b"\n"))
    requests = {  # noqa: RUF012
        "clean": Request(b"clean\n", stop=b"safe\n"),
        "safe": b"safe\n",
        "beep": Request(b"beep\n", moves=False),
        "dance": b"dance\n",
    }

    def decode_report(self, packet):
        return Telemetry()

    def encode_command(self, velocity):
        return b"v %g\n" % velocity.forward


class CleanerByDatagrams(Cleaner):
    name, control = "cleaner_by_datagrams", Udp(1)


def connected(robot):
    talk = ClientTalk(robot)
    talk.connect(b"report\n")
    return talk


@pytest.fixture(params=[Cleaner, CleanerByDatagrams])
def cleaning(request):
    talk = connected(request.param)
    assert data_of(talk.ask("clean")) == [b"clean\n"]
    assert b"safe\n" not in talk.sends(0.3), "while nobody commands it"
    return talk


@pytest.mark.parametrize(
    ("rank", "command"), [(Rank.HOLD, None), (Rank.COMMAND, ZERO), (Rank.COMMAND, FORWARD), (Rank.HELM, FORWARD)]
)
def test_hold_and_commands_end_a_motion_by_request(cleaning, rank, command):
    cleaning.rank, cleaning.command = rank, command
    first, *rest = cleaning.sends(0.3)
    assert first == b"safe\n"
    repeats = 0 if cleaning.peer else FINAL_REPEATS - 1
    assert rest.count(b"safe\n") == repeats
    words = cleaning.session.last_words()
    assert (words.neutral if words else None) == ((b"v 0\n",) if command is FORWARD else None)


@pytest.mark.parametrize("way", ["hold", "lost"])
@pytest.mark.parametrize("is_answered", [True, False])
def test_the_answer_to_what_ends_a_motion_is_no_outcome(is_answered, way):
    class Answering(Cleaner if way == "hold" else CleanerByDatagrams):
        name = "answering"
        requests = {  # noqa: RUF012
            "clean": Request(b"clean\n", stop=b"safe\n"),
            "safe": Request(b"safe\n", timeout_s=1.0 if is_answered else None),
            "beep": Request(b"beep\n", moves=False, timeout_s=1.0),
        }

        def decode_report(self, packet):
            return Answer("") if packet == b"ok\n" else Telemetry()

    talk = connected(Answering)
    talk.ask("clean")
    if way == "hold":
        talk.rank = Rank.HOLD
        assert b"safe\n" in talk.sends(0.3)
    else:
        assert b"safe\n" in data_of(talk.session.lost(talk.now_s))
        talk.connect(b"report\n")
    talk.ask("beep")
    assert bool(outcomes(talk.hear(b"ok\n"))) is not (is_answered and way == "hold")


def test_a_repeat_of_what_ends_a_motion_is_sent_before_the_next_motion():
    talk = connected(CleanerByDatagrams)
    talk.ask("clean")
    talk.rank = Rank.HOLD
    assert talk.sends(0.05).count(b"safe\n") == 1
    assert data_of(talk.ask("clean")) == [b"safe\n", b"clean\n"]


def test_last_words_end_a_motion_by_request(cleaning):
    words = cleaning.session.last_words()
    assert words.neutral == (b"safe\n", b"v 0\n")
    cleaning.session.neutral_sent(cleaning.now_s)
    assert cleaning.session.last_words() is None


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_lost_link_leaves_a_motion_by_request_to_end(cleaning, is_silent):
    session = cleaning.session
    if is_silent:
        cleaning.run(PARAMETERS.link_timeout + 0.1)
    elif cleaning.peer:
        cleaning.disconnect()
    if cleaning.peer:
        cleaning.connect()
    cleaning.hear(b"report\n")
    assert session.last_words().neutral == (b"safe\n", b"v 0\n")
    cleaning.rank = Rank.HOLD
    assert cleaning.sends(0.3)[0] == b"safe\n"


def test_the_request_to_stop_leaves_nothing_to_end(cleaning):
    assert data_of(cleaning.ask("safe")) == [b"safe\n"]
    assert cleaning.session.last_words() is None
    cleaning.rank = Rank.HOLD
    assert b"safe\n" not in cleaning.sends(0.3)


def test_the_end_and_a_stall_end_a_motion_by_request(cleaning):
    assert data_of(cleaning.session.resume(cleaning.now_s))[0] == b"safe\n"
    cleaning.ask("clean")
    assert data_of(cleaning.session.end(cleaning.now_s))[0] == b"safe\n"


def test_a_request_that_does_not_move_ends_nothing(cleaning):
    assert data_of(cleaning.ask("beep")) == [b"beep\n"]
    assert cleaning.session.last_words().neutral[0] == b"safe\n"


def test_another_motion_ends_the_first(cleaning):
    assert data_of(cleaning.ask("dance")) == [b"safe\n", b"dance\n"]


def test_after_a_motion_that_neutral_ends_last_words_are_kept():
    talk = connected(Cleaner)
    assert talk.session.last_words() is None
    assert data_of(talk.ask("dance")) == [b"dance\n"]
    talk.sends(0.3)
    assert talk.session.last_words().neutral == (b"v 0\n",)
    talk.rank = Rank.HOLD
    talk.sends(0.3)
    assert talk.session.last_words() is None


def test_a_robot_has_a_second_to_end_its_motion_before_it_is_said_to_disobey():
    report = lambda _, packet: Telemetry(disobeys="it cleans" if packet == b"cleans\n" else "")  # noqa: E731
    talk = connected(type("Moded", (Cleaner,), {"name": "moded", "decode_report": report}))
    talk.ask("clean")
    talk.run(2 * OBEYS_S)
    talk.rank, talk.command = Rank.COMMAND, FORWARD
    talk.run(0.1)
    for disobeys in ("", "it cleans"):
        talk.hear(b"cleans\n")
        assert talk.session.obedience.reason == disobeys
        talk.run(OBEYS_S)


def test_what_ends_a_motion_is_always_accepted():
    assert Cleaner.always_accepted == {"land", "emergency", "safe"}
    talk = connected(Cleaner)
    talk.session.fresh_since_s = 2e9
    assert data_of(talk.ask("safe")) == [b"safe\n"]
    assert data_of(talk.ask("dance")) == []


def test_a_robot_may_have_one_stop_for_all_requests():
    class Sweeper(Cleaner):
        name, stop = "sweeper", b"halt\n"

    talk = connected(Sweeper)
    talk.ask("dance")
    assert talk.session.last_words().neutral[0] == b"halt\n"
