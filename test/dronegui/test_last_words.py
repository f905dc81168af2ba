# SPDX-License-Identifier: Apache-2.0
"""Last words of dronegui_bridge: hover with the next number, after an emergency's press."""

import json
from random import Random

from last_words import each_conversation, sent_by_end, without_repeats, words_of
from session_talk import sent
from test_controller_session import FORWARD, HOVER, Talk

from drone_bridge.dronegui.codec import FlightState


def states(packets):
    return [json.loads(packet)["state"] for packet in packets]


def flown(**parameters):
    talk = Talk(**parameters)
    talk.open()
    talk.pilot.wanted = FORWARD
    talk.run(1.0)
    return talk


@each_conversation
def test_last_words_are_what_end_sends(seed):
    chance = Random(seed)
    talk = Talk()
    talk.open()
    for _ in range(chance.randrange(1, 20)):
        talk.pilot.wanted = chance.choice((None, FORWARD))
        if chance.random() < 0.2:
            talk.ask(chance.choice(("emergency", "takeoff", "land", "reset")))
        if chance.random() < 0.3:
            talk.show(chance.choice((FlightState.LANDED, FlightState.FLYING)))
        talk.run(chance.uniform(0.0, 0.3))
    newest = sent(talk.actions)[-1].data
    words = words_of(talk.session)
    ended = sent_by_end(talk.session, talk.now_s)
    if words:
        assert words == ended[: len(words)]  # numbers included
    else:
        assert states([newest]) == [HOVER]
    assert states(words or [newest]) == without_repeats(states(ended))


def test_an_emergency_is_pressed_once_more_before_its_release():
    talk = flown()
    talk.ask("emergency")
    talk.run(0.05)  # one packet
    assert [each["reset"] for each in states(words_of(talk.session))] == [True, False]


def test_after_a_stall_the_next_packet_has_a_higher_number_and_no_button():
    talk = flown()
    talk.ask("emergency")
    talk.run(0.05)
    words = words_of(talk.session)
    talk.now_s += 2.0
    talk.actions.clear()
    talk.take([*talk.session.neutral_sent(talk.now_s), *talk.session.resume(talk.now_s)])
    talk.run(0.1)
    after = [json.loads(each.data) for each in sent(talk.actions)]
    assert after[0]["seq"] == json.loads(words[-1])["seq"] + 1
    assert not any(each["state"]["reset"] for each in after)


def test_a_hovering_drone_needs_no_last_words():
    talk = flown()
    talk.pilot.wanted = None
    talk.run(0.1)
    assert words_of(talk.session) is None
