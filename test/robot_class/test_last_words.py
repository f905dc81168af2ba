# SPDX-License-Identifier: Apache-2.0
"""Last words of robots in one class: declared, or neutral and goodbye if `encode_command` has no state."""

from random import Random

import pytest
from last_words import each_conversation, sent_by_end, without_repeats, words_of
from own_robots import Pioneer, Tello
from robot_class_talk import ClientTalk, closes, data_of
from session_talk import sent

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Delimited, Robot, Tcp, Udp
from drone_bridge.robot_class.client_session import CONNECTED, GREETING
from drone_bridge.robot_class.robot import has_last_words
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import FINAL_GAP_S, Note

FORWARD = BodyVelocity(forward=0.5)


class Cart(Robot):
    """Robot on a stream that needs no greeting."""

    name, control = "cart", Tcp(1, Delimited(b"\n"))

    def encode_command(self, velocity):
        return b"%g %g\n" % (velocity.forward, velocity.turn)

    def encode_goodbye(self):
        return b"bye\n"


class Boat(Cart):
    """The same with datagrams."""

    name, control = "boat", Udp(1)


class Numbered(Boat):
    """Robot whose packets have numbers, and that declares no last words."""

    name = "numbered"

    def __init__(self):
        self.number = 0

    def encode_command(self, velocity):
        self.number += 1
        return b"%d " % self.number + super().encode_command(velocity)


class Declared(Numbered):
    """The same with last words."""

    name = "declared"

    def last_words(self):
        return b"%d 0 0\n" % (self.number + 1), self.encode_goodbye()


class Brief(Cart):
    """Robot that is told to stop once."""

    name, is_moving = "brief", False

    def encode_command(self, velocity):
        if velocity == BodyVelocity() and not self.is_moving:
            return b""
        self.is_moving = velocity != BodyVelocity()
        return super().encode_command(velocity)


class Talk(ClientTalk):
    """Session of a connected robot."""

    def __init__(self, robot):
        super().__init__(robot)
        self.actions = self.connect(b"hi\n")
        assert self.session.state == CONNECTED

    def decide(self, now_s):
        return Decision(Rank.COMMAND if self.command else Rank.NEUTRAL, self.command)

    def start(self, now_s):
        self.command = None

    def take(self, actions):
        self.actions += actions
        return actions


@pytest.mark.parametrize("robot", [Cart, Boat, Declared])
@each_conversation
def test_last_words_are_what_end_sends(robot, seed):
    chance = Random(seed)
    talk = Talk(robot)
    for _ in range(chance.randrange(12)):
        talk.command = chance.choice((None, FORWARD))
        talk.run(chance.uniform(0.0, 0.2))
    words = words_of(talk.session)
    newest = data_of(talk.actions)[-1]
    ended = sent_by_end(talk.session, talk.now_s)
    if robot is Declared:
        assert words is None or words[0] == ended[0]  # number included
        words, newest, ended = words and list(map(numberless, words)), numberless(newest), list(map(numberless, ended))
    assert (words or [newest, b"bye\n"]) == without_repeats(ended)


def numberless(packet):
    return packet if packet == b"bye\n" else packet.partition(b" ")[2]


class Polite(Cart):
    """Robot that is greeted."""

    name = "polite"

    def handshake(self):
        yield b"hello\n", lambda packet: packet == b"hi\n"


def test_greeting_of_a_robot_that_was_lost_in_motion_is_not_interrupted():
    talk = Talk(Polite)
    talk.command = FORWARD
    talk.run(0.1)
    assert words_of(talk.session) == [b"0 0\n", b"bye\n"]
    assert [type(each) for each in talk.disconnect()] == [Note], "nobody is there to be stopped"
    assert talk.session.last_words() is None
    assert not talk.session.is_open
    talk.connect()
    assert talk.session.state == GREETING
    assert talk.session.last_words() is None
    assert talk.session.resume(talk.now_s) == []
    assert sent_by_end(talk.session, talk.now_s) == []


@pytest.mark.parametrize("robot", [Cart, Boat])
def test_without_a_robot_nothing_is_sent(robot):
    session = ClientTalk(robot).session
    assert session.lost(1.0) == session.neutral_sent(1.0) == session.resume(1.0) == []
    assert session.last_words() is None
    assert session.end(1.0) == []
    assert session.is_over


def test_a_robot_on_datagrams_is_left_by_repeats():
    talk = Talk(Boat)
    assert talk.session.tick(talk.session.due_s - 0.01) == []
    lost = talk.session.lost(talk.now_s)
    assert data_of(lost) == [b"0 0\n", b"bye\n"]
    assert not closes(lost)
    talk = Talk(Boat)
    talk.session.end(talk.now_s)
    assert not talk.session.is_open
    assert talk.session.due_s == talk.now_s + FINAL_GAP_S


def test_undeclared_state_has_no_last_words():
    stateless, stateful = (Cart, Boat, Declared, Pioneer, Tello), (Numbered, Brief)
    assert {robot: has_last_words(robot) for robot in (*stateless, *stateful)} == {
        **dict.fromkeys(stateless, True),
        **dict.fromkeys(stateful, False),
    }
    talk = Talk(Numbered)
    talk.command = FORWARD
    talk.run(0.2)
    assert talk.session.last_words() is None


def test_preparing_last_words_does_not_keep_a_robot_from_being_stopped():
    talk = Talk(Brief)
    talk.command = FORWARD
    talk.run(0.2)
    talk.session.last_words()
    talk.command = None
    assert talk.sends(0.2) == [b"0 0\n"]


def test_after_an_error_in_preparing_last_words_earlier_ones_are_used():
    words = iter([(b"halt\n", b"bye\n")])  # then there are no more
    talk = Talk(type("Faulty", (Cart,), {"name": "faulty", "last_words": lambda _: next(words)}))
    talk.command = FORWARD
    talk.run(0.2)
    assert [words_of(talk.session) for _ in range(3)] == [[b"halt\n", b"bye\n"]] * 3


def test_after_a_stall_the_number_of_the_last_words_is_not_used_again():
    talk = Talk(Declared)
    talk.command = FORWARD
    talk.run(0.2)
    neutral, _ = words_of(talk.session)
    assert sent(talk.session.neutral_sent(talk.now_s)) == []
    (resumed,) = sent(talk.session.resume(talk.now_s))
    assert int(resumed.data.split()[0]) == int(neutral.split()[0]) + 1
