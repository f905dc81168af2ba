# SPDX-License-Identifier: Apache-2.0
"""Last words of telemetry_bridge: hover."""

from random import Random

from controller_talk import A, Talk
from last_words import each_conversation, sent_by_end, without_repeats, words_of
from session_talk import sent

from drone_bridge.telemetry.codec import DroneCommand


@each_conversation
def test_last_words_are_what_end_sends(seed):
    chance = Random(seed)
    talk = Talk()
    for _ in range(chance.randrange(12)):
        if chance.random() < 0.7:
            talk.hear()
        talk.pilot.command = chance.choice((None, DroneCommand(pitch=0.25)))
        talk.run(chance.uniform(0.0, 0.7), telemetry=chance.choice((A, None)))
    words, before = words_of(talk.session), [each.data for each in sent(talk.actions)]
    ended = without_repeats(sent_by_end(talk.session, talk.now_s))
    assert (words or before[-1:]) == ended


def test_a_drone_that_is_stopped_during_a_stall_needs_no_last_words():
    talk = Talk()
    talk.hear()
    talk.pilot.command = DroneCommand(pitch=0.25)
    talk.run(0.5, telemetry=A)
    assert words_of(talk.session)
    assert talk.session.neutral_sent(talk.now_s) == []
    assert words_of(talk.session) is None


def test_documents_on_topics_have_no_last_words():
    talk = Talk(by_topics=True)
    talk.session.opened(talk.now_s)
    talk.pilot.command = DroneCommand(pitch=0.25)
    talk.run(0.5)
    assert words_of(talk.session) is None
