# SPDX-License-Identifier: Apache-2.0
"""Last words of dronegui_bridge: hover with the next number."""

import json
from random import Random

import pytest
from last_words import each_conversation, sent_by_end, without_repeats, words_of
from session_talk import sent
from test_controller_session import FORWARD, HOVER, Talk

from drone_bridge.dronegui.codec import FlightState
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
    assert states(words or [newest]) == without_repeats(states(ended))


@pytest.mark.parametrize("command", [FORWARD, None])
def test_an_emergency_before_a_stall_is_pressed_after_it(command):
    talk = flown()
    talk.pilot.wanted = command
    talk.run(0.1)
    talk.ask("emergency")
    actions = stall(talk, has_words=words_of(talk.session) is not None)
    assert any(each["reset"] for each in states(each.data for each in sent(actions)))
    assert outcomes(actions) == [(True, "reset was pressed and released.")]


def stall(talk, *, unsent=(), has_words=True):
    """Return the actions after a stall in which these packets were not sent, but the last words were."""
    talk.now_s += 2.0
    for each in sent(unsent):
        talk.take(talk.session.unsent(each, "stale", talk.now_s))
    said = talk.session.neutral_sent(talk.now_s) if has_words else []
    assert words_of(talk.session) is None, "they were said"
    return [*said, *talk.take(talk.session.resume(talk.now_s)), *talk.run(1.0)]


def outcomes(actions):
    return [(each.is_success, each.sentence) for each in actions if isinstance(each, Outcome)]


def test_a_hovering_drone_needs_no_last_words():
    talk = flown()
    talk.pilot.wanted = None
    talk.run(0.1)
    assert words_of(talk.session) is None
