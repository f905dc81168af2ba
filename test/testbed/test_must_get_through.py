# SPDX-License-Identifier: Apache-2.0
"""A hover gets through to the testbed's drone, and a stop to the server's. A testbed waits for each reply.

| what | bytes or message | could keep it from the drone |
|---|---|---|
| hover by the bridge: STOP, no command | the neutral reply to the next frame, in lockstep to the pending one | a \
testbed that sends no frame: then its time is frozen |
| end of the bridge, or of the conversation; last words | the neutral reply, to the pending frame or ahead of the \
next | a testbed that has disconnected |
| a reply that a stall has made stale | the neutral one in its place | |
| stop by the server: end or silence of the autopilot, other properties | a NeutralCommand | |
"""

import pytest
from test_autopilot_session import CONSTANTS, NEUTRAL, answers
from test_autopilot_session import talking as bridge
from testbed_drone_talk import ANSWER, OTHER, commands
from testbed_drone_talk import NEUTRAL as STOP
from testbed_drone_talk import talking as server

from drone_bridge.testbed.codec import pack_reply

TIMEOUT_S = 0.5  # command_timeout
HOVER = [NEUTRAL.thrust]


@pytest.fixture(params=[False, True], ids=["latest", "lockstep"])
def talk(request):
    """Return a talk with a testbed that has sent a frame, and a drone that is steered."""
    talk = bridge(is_lockstep=request.param)
    talk.command(9.0)
    assert answers([*talk.show(), *talk.command(9.0, stamp=talk.stamp)]) == [9.0]
    return talk


def hold(talk):
    talk.commands.holds = True
    return [*talk.show(), *talk.session.commanded(None, talk.now_s)]


def no_command(talk):
    talk.commands.newest = None
    return [*talk.show(), *talk.run(TIMEOUT_S)]


def end(talk):
    return talk.session.end(talk.now_s)


def lost(talk):
    return talk.session.lost(talk.now_s)


def garbage(talk):
    return talk.say(talk.frame()[:-4] + b"\x7f\xc0\0\0")


STRAYS = {
    "nothing": lambda talk: None,
    "a new simulation": lambda talk: (talk.show(time=0.0), talk.run(TIMEOUT_S)),
    "a stall": lambda talk: talk.stall(3.0),
    "another testbed": lambda talk: talk.session.connected("b", talk.now_s),
    "a dropped event": lambda talk: talk.session.commanded(None, talk.now_s),
}


@pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
@pytest.mark.parametrize("stopping", [hold, no_command, end, lost, garbage])
def test_a_hover_gets_through(talk, stray, stopping):
    stray(talk)
    assert answers(stopping(talk))[-1:] == HOVER


@pytest.mark.parametrize("stopping", [end, lost])
def test_a_hover_gets_through_inside_a_frame_and_behind_a_pending_one(talk, stopping):
    talk.say(talk.frame()[:50])
    assert answers(stopping(talk)) == HOVER


def test_last_words_hover(talk):
    assert talk.session.last_words().leaves == (pack_reply(NEUTRAL),)


def test_another_conversation_begins_with_a_hover(talk):
    talk.session.disconnected("a", "It was reset.", talk.now_s)
    talk.connect("b")
    talk.say(talk.beds["b"].send(CONSTANTS), "b")
    assert answers([*talk.say(talk.frame("b"), "b"), *talk.run(TIMEOUT_S)]) == HOVER


# The server.


SERVER_STRAYS = {
    "nothing": lambda talk: None,
    "half a reply": lambda talk: talk.answer(ANSWER[:5]),
    "a reply ahead": lambda talk: talk.answer(),
    "another autopilot": lambda talk: talk.connect("b"),
    "a frame without an attitude": lambda talk: talk.show(has_attitude=False),
    "an unread frame": lambda talk: (setattr(talk, "reads", False), talk.show()),
}
SERVER_STOPS = {
    "left": lambda talk: talk.session.left("a", "It has gone.", talk.now_s),
    "disconnected": lambda talk: talk.session.disconnected("a", "It was reset.", talk.now_s),
    "silence": lambda talk: talk.run(TIMEOUT_S + 0.01),
    "garbage": lambda talk: talk.answer(3 * ANSWER),
    "other properties": lambda talk: (talk.drone.set_constants(OTHER), talk.session.step(talk.now_s))[1],
    "stall": lambda talk: [*talk.stall(3.0), *talk.run(0.0)],
    "lost": lambda talk: talk.session.lost(talk.now_s),
    "end": lambda talk: talk.session.end(talk.now_s),
}


@pytest.mark.parametrize("stray", SERVER_STRAYS.values(), ids=SERVER_STRAYS)
@pytest.mark.parametrize("stopping", SERVER_STOPS.values(), ids=SERVER_STOPS)
def test_the_server_stops_the_drone(stray, stopping):
    talk = server()
    talk.answer()
    stray(talk)
    talk.unsent.clear()  # the autopilot reads, if it is to be heard
    assert commands(stopping(talk))[-1:] == [STOP]
