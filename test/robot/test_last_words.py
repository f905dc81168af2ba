# SPDX-License-Identifier: Apache-2.0
"""Last words of robot_bridge: the rest of a packet, a stop, and at the end the release of all subsystems."""

from random import Random

from last_words import each_conversation, rest_of, sent_by_end, words_of
from session_talk import published, sent
from test_driver_session import BACK, FORWARD, ROBOT, Talk

from drone_bridge.robot.codec import STOPPED, LogMessage
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
        talk.is_answering = chance.random() < 0.6
        actions += talk.command(chance.choice((FORWARD, BACK, STOPPED)))
        actions += talk.run(chance.uniform(0.0, 0.2))
    words, rest = words_of(talk.session), rest_of(actions)
    ended = b"".join(sent_by_end(talk.session, talk.now_s))
    if words:
        assert rest + b"".join(words) == ended
    else:
        assert talk.speeds()[-1] == STOPPED


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
