# SPDX-License-Identifier: Apache-2.0
"""What must get through to a robot in one class, whatever comes on the wire.

| what | bytes | could keep it from the robot |
|---|---|---|
| neutral: STOP, no command, the end | `encode_command` or `encode_shares` of zero, at once, then at `rate` | one that \
can't be encoded: the last words are sent instead |
| the end of a motion by a request | its `stop`, before neutral; datagrams FINAL_REPEATS times | none; of a robot that \
answers each packet, repeats wait for answers |
| a person's land, emergency and `stop` | the packet of the request, at once, and again at each call | no link; an \
emergency is dropped at EMERGENCY_AGE_S |
| a landing by the limits | a sinking velocity, at `rate`, or the packet of land each second | a greeting repeats it |
| last words | `last_words`, after the `stop` | a class whose encoding has a state, and that declares none |

A stream may hold all of them back if the robot stops reading: motion is then withheld.
"""

import pytest
from own_robots import Tello
from robot_class_talk import ClientTalk, bytes_of, data_of
from session_talk import sent
from test_answers import Vacuum, VacuumByDatagrams
from test_own_motions import Cleaner, CleanerByDatagrams

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Robot
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.session import FINAL_REPEATS, LAND

FORWARD = BodyVelocity(forward=0.3)
FLYING = (
    b"pitch:0;roll:0;yaw:0;vgx:0;vgy:0;vgz:0;templ:60;temph:62;tof:70;h:70;bat:87;baro:0;time:7;agx:0;agy:0;agz:-999;"
)
#: Neutral packets and a good report, with its link, of each robot.
ROBOTS: dict[type[Robot], tuple[bytes, tuple[bytes, str]]] = {
    Tello: (b"rc 0 0 0 0", (FLYING, "state")),
    Cleaner: (b"v 0\n", (b"report\n", "robot")),
    CleanerByDatagrams: (b"v 0\n", (b"report\n", "robot")),
    Vacuum: (b"v 0\nget\n", (b"1\n", "robot")),
    VacuumByDatagrams: (b"v 0\nget\n", (b"1\n", "robot")),
}


def reconnected(talk):
    began = talk.disconnect() if talk.peer else list(talk.session.lost(talk.now_s))
    return began + talk.connect(b"ok\n")


#: What may come at any moment.
STRAYS = {
    "nothing": lambda talk: [],
    "nonsense": lambda talk: talk.hear(b"\xff\xfe\n"),
    "an answer": lambda talk: talk.hear(b"ok\n"),
    "a closed port": lambda talk: list(talk.session.refused("The port is closed.", talk.now_s)),
    "a stall": lambda talk: talk.stall(2.0),
    "a silence": lambda talk: talk.run(1.0),
    "a long silence": lambda talk: talk.run(3.2) if not talk.session.sender.is_stream else [],
    "another link": reconnected,
}
each_stray = pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
each_robot = pytest.mark.parametrize("robot", ROBOTS)


def driven(robot, request=""):
    """Drive a robot forward, or let a request move it. Return the talk."""
    talk = ClientTalk(robot)
    talk.connect(*[b"ok\n"] * 4)
    talk.hear(*ROBOTS[robot][1])
    talk.rank, talk.command = (Rank.NEUTRAL, None) if request else (Rank.COMMAND, FORWARD)
    first, *_ = data_of(talk.ask(request) if request else talk.run(0.5))
    assert first not in ROBOTS[robot][0], "it moves"
    return talk


@each_robot
@each_stray
def test_stop_gets_through(robot, stray):
    talk = driven(robot)
    sent_before = data_of(stray(talk))
    talk.rank, talk.command = Rank.HOLD, None
    sent_later = data_of(talk.run(0.1))
    assert (sent_later or sent_before)[-1] in (ROBOTS[robot][0], b"command"), "or a greeting behind it"
    assert ROBOTS[robot][0] in b"".join(sent_before + sent_later)


@pytest.mark.parametrize("robot", [Cleaner, CleanerByDatagrams, Vacuum, VacuumByDatagrams])
@each_stray
def test_the_end_of_a_motion_by_a_request_gets_through(robot, stray):
    talk = driven(robot, "clean")
    data = data_of(stray(talk))
    talk.rank = Rank.HOLD
    assert b"safe\n" in [*data, *data_of(talk.run(0.1))]


@pytest.mark.parametrize(("robot", "name"), [(Tello, LAND), (Tello, "emergency"), (Cleaner, "safe"), (Vacuum, LAND)])
@each_stray
def test_what_ends_a_flight_or_a_motion_is_sent_at_once_and_again(robot, name, stray):
    talk = driven(robot)
    stray(talk)
    packet = robot.all_requests[name].packet
    for _ in range(2):
        assert packet in data_of(talk.ask(name, talk.now_s))
    stray(talk)
    assert packet in data_of(talk.ask(name, talk.now_s))


@pytest.mark.parametrize("robot", [Tello, Vacuum])
@each_stray
def test_a_landing_by_the_limits_gets_through(robot, stray):
    talk = driven(robot)
    talk.rank, talk.command = Rank.LANDING, None
    talk.run(0.2)
    stray(talk)
    assert LAND.encode() in bytes_of(talk.run(2.1))


@each_robot
@each_stray
def test_the_end_gets_through(robot, stray):
    talk = driven(robot)
    before = data_of(stray(talk))
    data = data_of([*talk.session.end(talk.now_s), *talk.run(0.2)])
    least = 1 if talk.peer else FINAL_REPEATS
    assert (data.count(ROBOTS[robot][0]) >= least) or ROBOTS[robot][0] in before


@each_robot
@each_stray
def test_last_words_are_ready_unless_neutral_was_sent(robot, stray):
    talk = driven(robot)
    actions = stray(talk)
    words = talk.session.last_words()
    if words is None:
        assert ROBOTS[robot][0] in b"".join(each.data for each in sent(actions))
    else:
        assert words.neutral[-1] == ROBOTS[robot][0]
