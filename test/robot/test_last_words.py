# SPDX-License-Identifier: Apache-2.0
"""Last words of robot_bridge: the rest of a packet, a stop, and at the end the release of all subsystems."""

from random import Random

import pytest
from last_words import each_conversation, rest_of, sent_by_end, words_of
from session_talk import published, sent
from test_driver_session import BACK, DRIVE, FORWARD, LAMP, ROBOT, Talk

from drone_bridge.motion.body_velocity import STILL
from drone_bridge.robot.codec import STOPPED, KeepAlive, LogMessage, SubsystemBound, UnbindSubsystem
from drone_bridge.session.session import Send


def driven():
    talk = Talk()
    talk.connect()
    talk.say(ROBOT)
    talk.run(0.1)
    talk.command(FORWARD)
    return talk


@each_conversation
def test_last_words_are_what_end_sends(seed):
    chance = Random(seed)
    talk = driven()
    actions = []
    for _ in range(chance.randrange(20)):
        talk.is_answering = chance.random() < 0.3
        actions += talk.command(chance.choice((FORWARD, BACK, STOPPED)))
        actions += talk.run(chance.uniform(0.0, 0.2))
    words, rest = words_of(talk.session), rest_of(actions)
    ended = b"".join(sent_by_end(talk.session, talk.now_s))
    if words:
        assert rest + b"".join(words) == ended
    else:
        assert talk.speeds()[-1] == STOPPED


def slow():
    """Return a talk in the middle of a slow keep-alive, and the rest of that."""
    talk = driven()
    talk.is_answering, rest = False, b""
    while not rest:
        rest = rest_of([*talk.command(FORWARD), *talk.run(0.005)])
    return talk, rest


def test_a_stop_in_a_stall_completes_a_slow_keep_alive():
    talk, rest = slow()
    talk.wire.receive_data(rest + b"".join(talk.session.last_words().neutral))
    talk.now_s += 2.0
    talk.take([*talk.session.neutral_sent(talk.now_s), *talk.session.resume(talk.now_s)])
    talk.is_answering = True
    talk.run(0.5)
    assert talk.speeds()[-1] == STOPPED
    talk.command(FORWARD)
    talk.run(0.1)
    assert talk.speeds()[-1] == FORWARD


@pytest.mark.parametrize("is_bound", [True, False])
def test_the_end_completes_a_slow_keep_alive(is_bound):
    talk, _ = slow()
    if not is_bound:
        talk.say(SubsystemBound(DRIVE, "bob"), SubsystemBound(LAMP, "bob"))
    while not rest_of(talk.run(0.005)):
        pass
    talk.take(talk.session.end(talk.now_s))
    assert not talk.wire.inside_message
    assert isinstance(talk.heard[-1], UnbindSubsystem if is_bound else KeepAlive)


def test_odometry_ends_with_the_stop_in_a_stall():
    talk = driven()
    talk.run(0.1)
    began_s = talk.now_s
    before = talk.measurements[-1].position[0]
    talk.now_s += 3.3
    talk.take([*talk.session.neutral_sent(began_s + 0.7), *talk.session.resume(talk.now_s)])
    talk.run(0.2)
    assert talk.measurements[-1].velocity == STILL
    assert talk.measurements[-1].position[0] - before == pytest.approx(0.7 * FORWARD.left, abs=0.1 * FORWARD.left)


def test_a_robot_that_is_stopped_during_a_stall_needs_no_last_words():
    talk = driven()
    assert words_of(talk.session)
    talk.session.neutral_sent(talk.now_s)
    assert words_of(talk.session) is None


def test_packets_precede_what_is_published():
    talk = driven()
    talk.steering.speeds, talk.steering.arrived_s = BACK, talk.now_s + 0.1
    talk.now_s += 0.1
    actions = talk.session.receive(talk.wire.send(LogMessage("Hello")), "robot:25600", talk.now_s)
    are_packets = [isinstance(each, Send) for each in actions]
    assert are_packets == sorted(are_packets, reverse=True)
    assert published(actions)


def test_an_update_delayed_by_a_stall_does_not_outlast_the_stop():
    talk = driven()
    talk.steering.speeds, talk.steering.arrived_s = BACK, talk.now_s + 0.1
    talk.now_s += 0.1
    heard = talk.wire.send(LogMessage("Hello"))
    actions = talk.session.receive(heard, "robot:25600", talk.now_s)
    late = [each.data for each in sent(actions)]
    for each in (*talk.session.last_words().neutral, *late):  # stalled in between
        talk.wire.receive_data(each)
    talk.now_s += 2.0
    talk.take([*talk.session.neutral_sent(talk.now_s), *talk.session.resume(talk.now_s)])
    assert talk.speeds()[-3:] == [STOPPED, BACK, STOPPED]
