# SPDX-License-Identifier: Apache-2.0
"""A stop gets through to a robot, whatever comes on the wire. The robot keeps its last speeds.

| what | bytes | could keep it from the robot |
|---|---|---|
| stop: STOP, no command | an update (0x05) with zeros, at once | a network that carries nothing; \
a robot that lists another kind of subsystem under its number |
| the end of a connection | the same, then 0x06 | the same |
| last words | the same | the same |
| a robot that another driver has left running | the same, after the grant | a robot that does not grant it |
"""

import pytest
from session_talk import sent
from test_driver_session import DRIVE, FORWARD, LAMP, LINK_TIMEOUT_S, ROBOT, Talk

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds

#: Packets that a robot may send at any moment.
STRAYS = {
    "nothing": (),
    "another driver": (codec.SubsystemBound(DRIVE, "bob"),),
    "a release": (codec.SubsystemBound(DRIVE, ""),),
    "a grant": (codec.BindSuccess(DRIVE),),
    "a refusal": (codec.BindFailure(DRIVE),),
    "an unknown subsystem": (codec.SubsystemBound(9, "bob"), codec.BindSuccess(9), codec.BindFailure(9)),
    "the list": (ROBOT,),
    "a longer list": (codec.SubsystemInfo((*ROBOT.subsystems, codec.Subsystem(2, "beacon"))),),
    "safe mode": (codec.LogMessage("{drive} safe mode"),),
    "an unknown packet": (codec.UnknownPacket(99, b"?"),),
    "a foreign keep-alive": (codec.KeepAlive(1),),
    "robotd": (codec.FirmwareInfo("robotd", "1.2", 2),),
}
each_stray = pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)


@pytest.fixture
def talk():
    """Return a talk with a robot that is driven."""
    talk = Talk()
    talk.connect()
    talk.say(ROBOT)
    for _ in range(5):
        talk.command(FORWARD)
        talk.run(0.1)
    assert talk.speeds()[-1] == FORWARD
    return talk


@each_stray
def test_a_stop_gets_through_a_stray_packet(talk, stray):
    if stray:
        talk.say(*stray)
    talk.command(STOPPED)
    assert talk.speeds()[-1] == STOPPED


@each_stray
def test_a_command_that_ends_is_a_stop(talk, stray):
    if stray:
        talk.say(*stray)
    talk.run(0.6)
    assert talk.speeds()[-1] == STOPPED


@each_stray
def test_the_end_stops_the_robot(talk, stray):
    if stray:
        talk.say(*stray)
    talk.take(talk.session.end(talk.now_s))
    assert talk.speeds()[-1] == STOPPED


@each_stray
def test_last_words_stop_the_robot(talk, stray):
    if stray:
        talk.say(*stray)
    if words := talk.session.last_words():
        for data in words.neutral:
            talk.wire.receive_data(data)
        talk.take([])
    assert talk.speeds()[-1] == STOPPED


@pytest.mark.parametrize("silent_s", [0.3, 1.0, LINK_TIMEOUT_S - 0.1])
def test_a_stop_does_not_wait_for_answers(talk, silent_s):
    talk.is_answering = False
    end_s = talk.now_s + silent_s
    while talk.now_s < end_s:
        talk.command(Speeds(FORWARD.left, round(1000 * talk.now_s) % 2048))
        talk.run(0.05)
    talk.command(STOPPED)
    assert talk.speeds()[-1] == STOPPED


def test_a_stop_is_not_held_back_by_the_update_rate(talk):
    talk.parameters.max_update_rate = 1.0
    talk.command(Speeds(1, 1))
    talk.command(STOPPED)
    assert talk.speeds()[-1] == STOPPED


@pytest.mark.parametrize("has_words", [False, True])
def test_a_stall_ends_in_a_stop(talk, has_words):
    if has_words:
        talk.session.neutral_sent(talk.now_s + 0.7)
    assert talk.speeds()[-1] == FORWARD
    talk.stall(3.0)
    assert talk.speeds()[-1] == STOPPED


def test_a_robot_that_another_driver_has_left_running_is_stopped_by_the_grant(talk):
    talk.session.disconnected("robot:25600", "The robot has gone.", talk.now_s)
    talk.connect()
    assert not talk.speeds()
    talk.say(ROBOT)
    assert talk.speeds() == [STOPPED]
    assert sent(talk.session.end(talk.now_s))[-1].data == codec.UnbindSubsystem(LAMP).encode()
