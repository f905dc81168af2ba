# SPDX-License-Identifier: Apache-2.0
"""Last words of testbed_bridge: one neutral reply at the end, and none in a stall."""

from random import Random

from last_words import each_conversation, sent_by_end, words_of
from session_talk import sent
from test_autopilot_session import CONSTANTS, NEUTRAL, Talk, talking

from drone_bridge.testbed.codec import pack_reply


@each_conversation
def test_last_words_are_what_end_sends(seed):
    chance = Random(seed)
    talk = talking(is_lockstep=chance.choice((False, True)))
    newest = pack_reply(NEUTRAL)
    for _ in range(chance.randrange(12)):
        talk.commands.newest = None
        actions = talk.command(chance.choice((12.0, 18.0))) if chance.random() < 0.6 else []
        actions += [*talk.show(), *talk.run(0.6)]  # beyond command_timeout, as each frame is answered
        newest = [newest, *(each.data for each in sent(actions))][-1]
    words = words_of(talk.session)
    ended = sent_by_end(talk.session, talk.now_s)
    assert (words or [newest]) == ended


def test_before_a_frame_there_are_no_last_words():
    talk = Talk()
    talk.connect()
    assert words_of(talk.session) is None
    talk.say(talk.beds["a"].send(CONSTANTS))
    assert words_of(talk.session) is None


def test_a_stalled_testbed_gets_no_reply():
    talk = talking()
    talk.command(12.0)
    talk.show()
    assert talk.session.last_words().neutral == ()
