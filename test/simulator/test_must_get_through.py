# SPDX-License-Identifier: Apache-2.0
"""A stop gets through to the simulator's vehicle, and to the server's. A vehicle in the simulator keeps its velocity.

| what | bytes or message | could keep it from the vehicle |
|---|---|---|
| stop by the bridge: STOP, no command | ESET of zero v and w, beside unanswered requests | a lost connection; a \
suspended simulator executes it when it continues |
| end of the bridge, or of its streams; last words | the same | a lost connection |
| a vehicle that an earlier bridge has left moving | the same, first on each connection | |
| stop by the server: zero, PAUSE, end or silence of its client, STOP | a NEUTRAL command | zero that waits behind a \
service's answer: its client is then silent, so within `command_timeout` |
"""

import math

import pytest
from served_world import VEHICLE, ServedWorld
from simulator_talk import COMMAND_TIMEOUT_S, NAMES, NORTH, SET, STOPPED, SimulatorTalk
from simulator_world import STREAMED

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.vehicle.session.velocity_commands import NEUTRAL

PERIOD_S = 0.02
NAN = (math.nan, 0.0, 0.0)
#: Messages that a simulator may send at any moment.
STRAYS = {
    "nothing": (),
    "an unknown stream": (sim.EntityData(77, (0,), (NAN,)),),
    "a bad state": (sim.EntityData(VEHICLE, STREAMED, (NAN, NAN, NAN, (0.0,) * 4, NAN)),),
    "an unknown trigger": (sim.Triggered(9),),
    "the removal of the vehicle": (sim.Spied(False, ItemType.ENTITY, VEHICLE),),
    "an extended attribute": (sim.ExtendedData(0, ()),),
    "the end of a run": (sim.Completed(),),
}
each_stray = pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)


@pytest.fixture
def talk():
    """Return a talk with a vehicle that is steered."""
    talk = SimulatorTalk()
    talk.connect()
    talk.step()
    for _ in range(5):
        talk.command(NORTH)
        talk.run(0.1)
    assert talk.velocities()[-1] == SET[NORTH]
    return talk


def hold(talk):
    talk.arbiter.is_held = True
    talk.take(talk.session.commanded(talk.now_s))
    talk.run(PERIOD_S)


def stop(talk):
    talk.command(STOPPED)
    talk.run(PERIOD_S)


def end(talk):
    talk.take(talk.session.end(talk.now_s))


def last_words(talk):
    words = talk.session.last_words()
    talk.wires[words.to].receive_data(b"".join(words.leaves))
    talk.take([])


def silence(talk):
    talk.run(COMMAND_TIMEOUT_S + PERIOD_S)


def stall(talk):
    talk.stall(3.0)


def lose_streams(talk):
    talk.disconnect("streams")


each_stop = pytest.mark.parametrize("stopping", [hold, stop, end, last_words, silence, stall, lose_streams])


@each_stray
@each_stop
def test_a_stop_gets_through_a_stray_message(talk, stray, stopping):
    for name in NAMES:
        if stray:
            talk.say(name, *stray)
    stopping(talk)
    assert talk.velocities()[-1] == SET[STOPPED]


@pytest.mark.parametrize("silent_s", [PERIOD_S, 0.2, 1.0, 5.0])
@each_stop
def test_a_stop_does_not_wait_for_answers(talk, silent_s, stopping):
    talk.is_silent = True
    end_s = talk.now_s + silent_s
    while talk.now_s < end_s:
        talk.command(NORTH)
        talk.run(PERIOD_S)
    if silent_s < 0.3 or stopping is not last_words:  # none are needed after the zero for a slow simulator
        stopping(talk)
    assert talk.velocities()[-1] == SET[STOPPED]


@pytest.mark.parametrize("name", NAMES)
def test_a_stop_that_a_lost_connection_kept_is_sent_first_on_the_next(talk, name):
    talk.disconnect(name)
    talk.take(talk.session.lost(talk.now_s))
    talk.connect()
    assert talk.asked["requests"][0].value == SET[STOPPED]


# The server.


AHEAD, ASKING = sim.SetEntity(VEHICLE, Attribute.VELOCITY, (1.0, 0.0, 0.0)), sim.GetExtended(3, "key")
ZERO = sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.0, 0.0, 0.0))


@pytest.fixture
def world():
    """Return a server with two clients, of which the first steers."""
    world = ServedWorld()
    world.connect("bob")
    world.move()
    assert world.ask(AHEAD) == sim.Ok()
    return world


SERVER_STRAYS = {
    "nothing": lambda world: None,
    "garbage of another client": lambda world: world.clients[1].say(b"\xff" * 40),
    "the end of another client": lambda world: world.clients[1].leave(),
    "a request of another client": lambda world: world.clients[1].send(AHEAD),
    "half a request": lambda world: world.client.say(sim.frame(sim.Reassure())[:3]),
    "the end of a run": lambda world: world.do(world.session.reported, sim.Completed()),
    "an unknown entity": lambda world: world.do(world.session.reported, sim.Spied(False, ItemType.ENTITY, 9)),
}
SERVER_STOPS = {
    "leave": lambda world: world.client.leave(),
    "garbage": lambda world: world.client.say(b"\xff" * 40),
    "silence": lambda world: world.run(world.parameters.command_timeout + 0.01),
    "hold": lambda world: world.hold(True),
    "stall": lambda world: world.stall(3.0),
    "end": lambda world: world.do(world.session.end),
    "lost": lambda world: world.do(world.session.lost),
}


@pytest.mark.parametrize("stray", SERVER_STRAYS.values(), ids=SERVER_STRAYS)
@pytest.mark.parametrize("stopping", SERVER_STOPS.values(), ids=SERVER_STOPS)
def test_the_server_stops_the_vehicle_whatever_it_has_received(world, stray, stopping):
    stray(world)
    stopping(world)
    assert world.commands[-1][:2] == NEUTRAL[:2]


@pytest.mark.parametrize("request_", [ZERO, sim.Pause()])
@pytest.mark.parametrize("gap_s", [0.0, 0.4])
def test_a_client_stops_the_vehicle_at_once_also_after_a_stall(world, request_, gap_s):
    if gap_s:
        world.stall(gap_s)
    world.client.send(request_)
    assert world.commands[-1][:2] == NEUTRAL[:2]


def test_a_stop_behind_a_service_that_does_not_answer_comes_in_time(world):
    world.answers_later, world.bridge.responses = True, {"get_attribute": None}
    world.client.send(ASKING, ZERO)
    assert world.commands[-1].v == AHEAD.value
    world.run(world.parameters.command_timeout)
    assert world.commands[-1] == NEUTRAL
