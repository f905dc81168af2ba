# SPDX-License-Identifier: Apache-2.0
"""A robot that answers each packet, slowly: one is outstanding, so that it executes none late."""

import pytest
from own_robots import Tello
from robot_class_talk import Asked, ClientTalk, OperatorParameters, bytes_of, counters, data_of, outcomes

from drone_bridge.robot_class import Answer, BodyVelocity, Delimited, Request, Robot, Tcp, Telemetry, Udp
from drone_bridge.robot_class.client_requests import UNDECLARED
from drone_bridge.robot_class.outstanding import ANSWER_S, OutstandingPackets
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.session import Outcome

STEP_S = 0.01


class Vacuum(Robot):
    """Robot that executes a packet, then answers it. A command has a poll behind it."""

    name, control, answered, model = "vacuum", Tcp(1, Delimited(b"\n")), True, "drone"
    requests = {  # noqa: RUF012
        "clean": Request(b"clean\n", stop=b"safe\n"),
        "beep": Request(b"beep\n", moves=False),
        "land": Request(b"land\n", timeout_s=5.0),
    }

    def encode_command(self, velocity):
        return b"v %g\nget\n" % velocity.forward

    def decode_report(self, packet):
        if packet.startswith(b"500"):
            return Answer("", False, packet.decode().strip())
        return Answer("") if packet == b"ok\n" else Telemetry()


class GreetedVacuum(Vacuum):
    name = "greeted_vacuum"

    def handshake(self):
        yield b"hello\n", bool


class VacuumByDatagrams(Vacuum):
    name, control = "vacuum_by_datagrams", Udp(1, Delimited(b"\n"))


class Talk(ClientTalk):
    """Session, and a robot that takes `answer_s` for each packet. Answers in `lost` don't arrive."""

    def __init__(self, robot, answer_s=0.25):
        super().__init__(robot, parameters=OperatorParameters(link_timeout=30.0))
        self.answer_s = answer_s
        self.queue, self.executed, self.refused, self.outcomes, self.most = [], [], b"", {}, 0
        self.free_s, self.lost = 0.0, lambda packet: False
        self.take(self.connect())
        self.run(2.0)

    def take(self, actions):
        self.outcomes |= {each.request: each for each in actions if isinstance(each, Outcome)}
        if (new := bytes_of(actions).splitlines(keepends=True)) and not self.queue:
            self.free_s = self.now_s + self.answer_s
        self.queue += new
        self.most = max(self.most, len(self.queue))
        return new

    def ask(self, name):
        request = Asked(name)
        return request, self.take(self.session.ask(request, self.now_s))

    def run(self, seconds):
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += STEP_S
            if self.queue and self.now_s >= self.free_s:
                packet = self.queue.pop(0)
                self.executed.append((self.now_s, packet))
                self.free_s = self.now_s + self.answer_s
                answer = b"500 no\n" if packet == self.refused else b"1\n" if packet == b"get\n" else b"ok\n"
                if not self.lost(packet):
                    self.take(self.hear(answer))
            if self.now_s >= self.session.due_s:
                self.take(self.session.tick(self.now_s))

    def drive(self, seconds=5.0):
        self.rank, self.command, self.most = Rank.COMMAND, BodyVelocity(0.3), 0
        self.run(seconds)

    def late_s(self, rank=Rank.NEUTRAL, seconds=20.0):
        """Stop, and return the time until the last moving command was executed, or a neutral one after it."""
        self.rank, self.command, began_s = rank, None, self.now_s
        self.run(seconds)
        moved_s = max(at_s for at_s, packet in self.executed if packet == b"v 0.3\n")
        return min(at_s for at_s, packet in self.executed if at_s > moved_s and packet == b"v 0\n") - began_s


@pytest.mark.parametrize("rank", [Rank.NEUTRAL, Rank.HOLD])
@pytest.mark.parametrize(
    ("robot", "answer_s"),
    [
        *((Vacuum, each) for each in (0.02, 0.25, 0.6, 1.5)),
        *((VacuumByDatagrams, each) for each in (0.02, 0.25, 0.6)),
    ],
)
def test_a_slow_robot_stops_within_two_answers(robot, answer_s, rank):
    talk = Talk(robot, answer_s)
    talk.drive(60.0)
    assert talk.most == 1
    assert talk.late_s(rank) <= 2 * answer_s + 0.5


def test_a_robot_that_takes_seconds_for_an_answer_executes_no_queue():
    talk = Talk(Vacuum, 2.5)
    talk.drive(60.0)
    assert talk.late_s() <= 2 * 2.5 + 0.5


def answering(robot, **parameters):
    """Return the talk of a connected robot that has answered, and answers further only if the test does."""
    talk = ClientTalk(robot, parameters=OperatorParameters(link_timeout=30.0, **parameters))
    talk.connect(*[b"ok\n", b"1\n"] * (1 if talk.peer else 2))
    assert not talk.session.sender.outstanding.is_busy(talk.now_s)
    return talk


@pytest.mark.parametrize("is_by_keeper", [False, True])
def test_an_answer_is_awaited_from_when_its_packet_was_sent(is_by_keeper):
    talk = answering(VacuumByDatagrams, rate=0.5)
    talk.now_s += 2.0
    talk.session.neutral_sent(talk.now_s) if is_by_keeper else talk.session.tick(talk.now_s)
    assert not bytes_of(talk.ask("beep")), "it waits"


def test_after_a_stall_no_answer_of_before_it_is_awaited():
    talk = ClientTalk(VacuumByDatagrams)
    talk.connect()
    talk.session.resume(talk.now_s)
    talk.hear(b"ok\n")
    talk.hear(b"1\n")
    assert bytes_of(talk.ask("beep")) == b"beep\n"


@pytest.mark.parametrize("most", [0.3, 0.2])
def test_neutral_is_sent_at_once_and_whole_also_for_an_unencodable_command(most):
    class Limited(Vacuum):
        name = "limited"

        def encode_command(self, velocity):
            if velocity.forward > most:
                raise ValueError("too fast")
            return super().encode_command(velocity)

    talk, neutral = answering(Limited), [b"v 0\nget\n"]
    talk.rank, talk.command = Rank.COMMAND, BodyVelocity(0.3)
    assert talk.sends(0.1) == ([b"v 0.3\n"] if most == 0.3 else neutral)
    talk.rank, talk.command = Rank.NEUTRAL, None
    assert talk.sends(0.1) == (neutral if most == 0.3 else [])
    assert [data for answer in (b"ok\n", b"ok\n", b"1\n") for data in data_of(talk.hear(answer))] == []


def test_by_datagrams_the_stop_of_a_request_is_sent_at_once_and_its_repeats_wait():
    talk = answering(VacuumByDatagrams)
    talk.ask("clean")
    talk.rank = Rank.HOLD
    assert talk.sends(0.9) == [b"safe\n"]
    talk.hear(b"ok\n")
    talk.hear(b"ok\n")
    assert talk.sends(0.1)[0] == b"safe\n"


def test_a_repeated_landing_waits_for_an_answer_but_not_for_long():
    talk = answering(Vacuum)
    talk.session.sender.outstanding.sent(1, talk.now_s, None, 9.0)
    talk.rank = Rank.LANDING
    lands_at = [each for each in range(60) if b"land\n" in talk.sends(0.1)]
    assert lands_at == pytest.approx([0, 20, 40], abs=1)


def test_a_landing_during_the_greeting_waits_for_no_answer():
    talk = ClientTalk(GreetedVacuum)
    talk.connect()
    talk.rank = Rank.LANDING
    lands_at = [each for each in range(35) if b"land\n" in talk.sends(0.1)]
    assert lands_at[1:] == pytest.approx([each + 10 for each in lands_at[:-1]], abs=1)
    assert len(lands_at) >= 2


@pytest.mark.parametrize(("declared", "is_said"), [(None, True), (False, False)])
def test_a_class_that_does_not_say_that_its_robot_answers_commands_is_named(declared, is_said):
    talk = ClientTalk(type("Undeclared", (Vacuum,), {"name": "undeclared", "answered": declared}))
    talk.connect()
    said = [counters([*talk.run(0.05), *talk.hear(b"ok\n")]) for _ in range(30)]
    assert ([UNDECLARED] in said, [UNDECLARED] in said[:20]) == (is_said, False)


@pytest.mark.parametrize("robot", [Vacuum, VacuumByDatagrams])
def test_lost_answers_delay_commands_but_no_stop(robot):
    talk = Talk(robot)
    talk.lost = lambda packet: len(talk.executed) % 3 == 0
    talk.drive(20.0)
    assert sum(packet == b"v 0.3\n" for _, packet in talk.executed) >= 2
    assert talk.late_s() <= ANSWER_S + 0.5


def test_commands_go_at_the_rate_and_polls_between_them():
    talk = Talk(Vacuum, 0.01)
    talk.executed.clear()
    talk.drive(2.0)
    packets = [packet for _, packet in talk.executed]
    packets = packets[packets.index(b"v 0.3\n") :]
    assert packets[::2] == [b"v 0.3\n"] * len(packets[::2])
    assert packets[1::2] == [b"get\n"] * len(packets[1::2])
    assert 38 <= len(packets[::2]) <= 41


def test_a_request_waits_and_gets_its_own_answer():
    talk = Talk(Vacuum)
    talk.drive()
    talk.refused = b"beep\n"
    (request, now), (other, _) = talk.ask("beep"), talk.ask("clean")
    assert now == []
    talk.run(2.0)
    assert not talk.outcomes[request].is_success
    assert talk.outcomes[request].sentence == "500 no"
    assert talk.outcomes[other].is_success
    assert talk.most == 2, "the stop of clean beside it, as a command follows"


@pytest.mark.parametrize("robot", [Vacuum, VacuumByDatagrams])
def test_an_answer_to_a_packet_that_counts_as_lost_is_no_outcome(robot):
    talk = answering(robot)
    talk.rank, talk.command = Rank.COMMAND, BodyVelocity(0.3)
    assert b"v 0.3\n" in talk.sends(0.1)
    talk.ask("beep")
    assert b"beep\n" in talk.sends(ANSWER_S)
    ((_, is_success, sentence),) = outcomes(talk.hear(b"ok\n"))
    assert (is_success, "unknown" in sentence) == (False, True)


def test_a_rejected_answer_is_no_success():
    class Strict(VacuumByDatagrams):
        name = "strict"

        def decode_report(self, packet):
            if packet.startswith(b"500"):
                raise ValueError("Unable to dock")
            return super().decode_report(packet)

    talk = Talk(Strict)
    talk.refused = b"clean\n"
    request, _ = talk.ask("clean")
    talk.run(2.0)
    assert "Unable to dock" in talk.outcomes[request].sentence
    assert not talk.outcomes[request].is_success


@pytest.mark.parametrize("cause", ["hold", "stall", "timeout"])
def test_a_request_that_is_void_meanwhile_is_never_sent(cause):
    talk = Talk(Vacuum)
    talk.drive()
    request, _ = talk.ask("clean")
    if cause == "hold":
        talk.rank, talk.command = Rank.HOLD, None
    elif cause == "stall":
        request.asked_s, talk.session.fresh_since_s = talk.now_s, talk.now_s + 0.01
        talk.take(talk.session.resume(talk.now_s))
    else:
        talk.lost = lambda packet: True
        talk.session.sender.outstanding.sent(1, talk.now_s, None, 5.0)
    talk.run(8.0)
    assert b"clean\n" not in [packet for _, packet in talk.executed]
    assert not talk.outcomes[request].is_success


def test_a_second_land_gets_the_second_answer():
    talk = Talk(Vacuum)
    talk.drive()
    talk.refused = b"land\n"
    (first, _), (second, sent_again) = talk.ask("land"), talk.ask("land")
    assert sent_again == [b"land\n"]
    assert "called again" in talk.outcomes[first].sentence
    talk.run(3.0)
    assert talk.outcomes[second].sentence == "500 no"


def test_answers_are_matched_by_name_or_order():
    packets, beep = OutstandingPackets(is_stream=True), Asked("beep")
    assert not packets.is_busy(0.0)
    packets.sent(1, 0.0)
    packets.sent(1, 0.1, beep)
    assert packets.answered(0.2, "other") == (None, False)
    assert packets.answered(0.2, "beep") == (beep, False)
    assert packets.is_busy(0.2)
    assert packets.answered(0.3) == (None, False)
    assert not packets.is_busy(0.3)


BEEP = Asked("beep")


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(("event", "at_s"), [("is_busy", ANSWER_S), ("resume", 0.1)])
def test_an_answer_may_be_that_of_a_packet_that_counts_as_lost(is_stream, event, at_s):
    packets = OutstandingPackets(is_stream=is_stream)
    packets.sent(1, 0.0)
    getattr(packets, event)(at_s)
    packets.sent(2, at_s, BEEP)
    if is_stream and event == "resume":
        assert packets.answered(0.2) == (None, False), "it waits in the stream"
        assert packets.answered(0.2) == (BEEP, False)
        return
    assert packets.answered(at_s + ANSWER_S) == (BEEP, True)
    assert packets.answered(at_s + ANSWER_S + 0.1) == (BEEP, False)
    packets.sent(1, at_s, BEEP)
    assert packets.answered(at_s, "beep") == (BEEP, False), "by name"


@pytest.mark.parametrize(
    ("is_stream", "events", "timeout_s"),
    [
        (False, [], ANSWER_S),
        (False, [("sent", 1, 99.0), ("answered", 99.9)], ANSWER_S),
        (True, [("sent", 1, 99.5)], ANSWER_S - 0.5),  # from the oldest on
        (True, [("sent", 2, 98.5), ("answered", 99.5)], ANSWER_S - 0.5),
        (True, [("sent", 1, 0.0), ("resume", 99.5)], ANSWER_S - 0.5),
        (True, [("sent", 1, 99.5, BEEP, 5.0)], 4.5),
    ],
)
def test_an_answer_is_awaited_for_a_time(is_stream, events, timeout_s):
    packets = OutstandingPackets(is_stream=is_stream)
    for name, *words in events:
        getattr(packets, name)(*words)
    packets.sent(1, 100.0)
    assert next(tick / 10 for tick in range(99) if not packets.is_busy(100.05 + tick / 10)) == timeout_s


def test_a_command_that_was_skipped_is_decided_anew_with_the_answer():
    talk = ClientTalk(Vacuum)
    talk.connect(b"ok\n", b"1\n")
    talk.rank, talk.command = Rank.COMMAND, BodyVelocity(0.5)
    assert talk.sends(0.2) == [b"v 0.5\n"]
    assert data_of(talk.hear(b"ok\n")) == [b"get\n"]
    assert talk.sends(0.2) == []
    talk.hear(b"1\n")
    assert talk.session.due_s == talk.now_s


STATE = (
    "pitch:0;roll:0;yaw:0;vgx:0;vgy:0;vgz:0;templ:60;temph:62;tof:10;h:%d;bat:87;baro:0;time:%d;agx:0;agy:0;agz:-999;"
)


@pytest.mark.parametrize("flies_after_s", [0.0, 4.0, None])
def test_a_tello_whose_firmware_answers_rc_shows_its_takeoff_and_landing(flies_after_s):
    talk, heard, motors_s = ClientTalk(Tello), [], 0.0
    talk.connect(b"ok")

    def live(seconds):
        nonlocal motors_s
        for _ in range(round(10 * seconds)):
            is_up = flies_after_s is not None and flies_after_s <= talk.now_s - 103.0 and not landed
            motors_s += 0.1 * is_up
            actions = [*talk.run(0.1), *talk.hear((STATE % (80 * is_up, motors_s)).encode(), "state")]
            answers = [b"ok"] * sum(data.startswith(b"rc") for data in data_of(actions))
            heard.extend((round(talk.now_s), *each) for each in outcomes(actions))
            for each in answers:  # the drone's own answer to takeoff is one of these
                heard.extend((round(talk.now_s), *each) for each in outcomes(talk.hear(each)))

    landed = False
    live(3.0)
    talk.ask("takeoff")
    live(22.0)
    (at_s, name, is_success, sentence) = heard.pop()
    if flies_after_s is None:
        assert (at_s, is_success) == (123, False), sentence
        return
    assert (name, is_success, at_s < 103 + flies_after_s + 5) == ("takeoff", True, True)
    landed = bool(talk.ask("land"))
    live(6.0)
    assert [each[1:3] for each in heard] == [("land", True)]
