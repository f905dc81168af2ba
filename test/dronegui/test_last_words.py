# SPDX-License-Identifier: Apache-2.0
"""Last words of dronegui_bridge: hover, after an emergency's press, both of which get through."""

import json
from random import Random

import pytest
from last_words import each_conversation, sent_by_end, without_repeats, words_of
from session_talk import sent
from test_controller_session import FORWARD, HOVER, Talk

from drone_bridge.dronegui.codec import FIRST_SEQ, FlightState
from drone_bridge.dronegui.session.buttons import PACKETS_PER_LEVEL
from drone_bridge.session.session import Outcome


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
    assert without_repeats(states(words or [newest])) == without_repeats(states(ended))


def test_a_young_emergency_is_pressed_once_more_before_its_release():
    talk = flown()
    talk.ask("emergency")
    for packets in range(1, PACKETS_PER_LEVEL + 1):
        is_again = packets < PACKETS_PER_LEVEL
        assert [each["reset"] for each in without_repeats(states(words_of(talk.session)))] == [True] * is_again + [
            False
        ]
        talk.take(talk.session.tick(talk.session.due_s))


def test_an_emergency_pressed_by_last_words_is_not_repeated():
    talk = flown()
    actions = stall(talk, unsent=talk.ask("emergency"))
    assert not any(each["reset"] for each in states(each.data for each in sent(actions)))
    assert "unknown whether the motors are off" in outcomes(actions)[0][1]
    talk.ask("emergency")
    talk.run(0.05)
    assert json.loads(sent(talk.actions)[-1].data)["state"]["reset"]


def test_the_next_packet_after_last_words_gets_through():
    talk = flown()
    assert [json.loads(each.data)["seq"] for each in sent(stall(talk))][:2] == [FIRST_SEQ] * 2


@pytest.mark.parametrize("command", [FORWARD, None])
def test_an_emergency_before_a_stall_without_last_words_is_pressed_after_it(command):
    talk = flown()
    talk.pilot.wanted = command
    talk.run(0.1)
    talk.ask("emergency")
    actions = stall(talk, has_words=False)
    assert any(each["reset"] for each in states(each.data for each in sent(actions)))
    assert "reset was pressed and released" in outcomes(actions)[0][1]


def stall(talk, *, unsent=(), has_words=True):
    """Return the actions after a stall in which these packets were not sent, but the last words were."""
    talk.now_s += 2.0
    for each in sent(unsent):
        talk.take(talk.session.unsent(each, "stale", talk.now_s))
    said = talk.session.neutral_sent(talk.now_s) if has_words else []
    assert not has_words or words_of(talk.session) is None, "they were said"
    return [*said, *talk.take(talk.session.resume(talk.now_s)), *talk.run(1.0)]


def outcomes(actions):
    return [(each.is_success, each.sentence) for each in actions if isinstance(each, Outcome)]


def test_a_hovering_drone_needs_no_last_words():
    talk = flown()
    talk.pilot.wanted = None
    talk.run(0.1)
    assert words_of(talk.session) is None
