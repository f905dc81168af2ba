# SPDX-License-Identifier: Apache-2.0
"""Neutral and landing get through to a drone, whatever comes on the wire. The drone keeps its last command forever.

| what | bytes | could keep it from the drone |
|---|---|---|
| neutral: STOP, no command, the end | a neutral document, at `rate`; without telemetry, every 2 s | a lost network; a \
drone that has sent for less than PROVEN_S is only commanded while it sends, or if it was called |
| landing without telemetry | a sinking document, at `rate` | the same |
| last words | a neutral document | the same |
"""

import json
import math

import pytest
from controller_talk import PERIOD_S, A, Talk
from limited_vehicle import LANDS_AFTER_S
from session_talk import documents, sent
from telemetry_documents import DRONE, HOVER, ROVER, changed, drone
from test_lost_telemetry import SINKS, LandingTalk

from drone_bridge.session.session import FINAL_GAP_S, FINAL_REPEATS
from drone_bridge.telemetry.codec import ROVER_TOPIC, DroneCommand
from drone_bridge.telemetry.device import CALL_GAPS_S

FORWARD = DroneCommand(pitch=0.25)


def said(document, source):
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return lambda talk: talk.session.receive(data, source, talk.now_s)


#: What may come at any moment.
STRAYS = {
    "nothing": lambda talk: [],
    "another drone": said(drone(timestamp=9.0), ("192.0.2.1", 5000)),
    "a drone of the same host": said(drone(timestamp=9.0), ("127.0.0.1", 6000)),
    "an old document": said(changed(DRONE, timestamp=0.1), A),
    "nonsense": said(b"{", A),
    "a rover": said(ROVER, ROVER_TOPIC),
    "a refusal": lambda talk: talk.session.refused("The port is closed.", talk.now_s),
    "a stall": lambda talk: talk.stall(2.0),
    "another link": lambda talk: [*talk.session.lost(talk.now_s), *talk.session.opened(talk.now_s)],
}
each_stray = pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
each_role = pytest.mark.parametrize("called", [None, lambda: A], ids=["listening", "calling"])


def flown(talk):
    """Fly forward for 3 s. Return the talk."""
    talk.take(talk.session.opened(talk.now_s))
    talk.hear()
    talk.pilot.command = FORWARD
    talk.run(3.0, telemetry=A)
    return talk


def newest(talk):
    """Return the command that is in force at the drone."""
    return documents(talk.actions, A)[-1]


@each_role
@each_stray
def test_neutral_gets_through_a_stray_packet_a_stall_and_another_link(called, stray):
    talk = flown(Talk(called=called))
    assert newest(talk) != HOVER
    talk.pilot.command = None
    talk.take(stray(talk))
    talk.run(2 * PERIOD_S, telemetry=A)
    assert newest(talk) == HOVER


@each_role
def test_neutral_is_repeated_for_lost_packets(called):
    talk = flown(Talk(called=called))
    talk.pilot.command = None
    talk.run(0.5, telemetry=A)
    assert documents(talk.actions, A)[-12:] == [HOVER] * 12


@each_role
@each_stray
def test_neutral_is_repeated_without_telemetry(called, stray):
    """Telemetry, and the last commands, may be lost together."""
    talk = flown(Talk(called=called))
    talk.run(1.5)
    talk.actions.clear()
    talk.take(stray(talk)) if stray not in OTHERS else None
    talk.run(CALL_GAPS_S[-1] + 2 * PERIOD_S)
    assert newest(talk) == HOVER


OTHERS = [STRAYS["another drone"], STRAYS["a drone of the same host"]]


@each_role
def test_another_drone_replaces_a_silent_one_only_if_that_was_not_called(called):
    talk = flown(Talk(called=called))
    talk.run(1.5)
    assert bool(sent(STRAYS["another drone"](talk))) == (called is None)


@each_role
@each_stray
@pytest.mark.parametrize("at_s", [1.5, LANDS_AFTER_S + 1.0])
def test_a_landing_without_telemetry_gets_through(called, stray, at_s):
    talk = LandingTalk(called=called)
    talk.take(talk.session.opened(talk.now_s))
    talk.fly(3.0)
    talk.run(at_s)
    talk.take(stray(talk))
    talk.run(LANDS_AFTER_S + 3.0 - at_s)
    assert newest(talk) == SINKS


@each_role
@each_stray
def test_the_end_gets_through(called, stray):
    talk = flown(Talk(called=called))
    talk.take(stray(talk))
    talk.actions.clear()
    talk.take(talk.session.end(talk.now_s))
    talk.run(FINAL_REPEATS * FINAL_GAP_S)
    assert documents(talk.actions, A) == [HOVER] * FINAL_REPEATS


@each_role
@each_stray
def test_last_words_are_ready_whatever_came(called, stray):
    talk = flown(Talk(called=called))
    if sent(stray(talk)):
        return  # neutral is in force
    words = talk.session.last_words()
    assert (json.loads(words.neutral[0]), words.to) == (HOVER, A)


def test_a_forged_datagram_gets_no_commands_without_end():
    talk = Talk()
    talk.hear()
    talk.stall(10.0)
    talk.run(1.5)
    talk.actions.clear()
    talk.run(60.0)
    assert (talk.actions, talk.session.due_s) == ([], math.inf)
