# SPDX-License-Identifier: Apache-2.0
"""simulator_server on hold: no request moves the vehicle, and all others are executed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_simulator import OfflineSimulator
from served_world import VEHICLE, ServedWorld
from simulator_requests import requests_of

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.vehicle.session.forwarding import HELD

NOWHERE, AHEAD, PUSH = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (5.0, 0.0, 0.0)
TURNED = (0.5, 0.5, 0.5, 0.5)
CURRENT = sim.Turbulence(PUSH, PUSH, 1.0, 1.0, NOWHERE, NOWHERE, 1.0, 1.0)
ON_HOLD = sim.Error(0, HELD)
EACH_KIND = pytest.mark.parametrize("kind", sim.REQUESTS.values(), ids=lambda kind: kind.NAME)

#: One request for each way to move the vehicle of a simulator.
MOVING = [
    *(sim.SetEntity(VEHICLE, attribute, AHEAD) for attribute in (0, 1, 2, 4)),
    sim.SetEntity(VEHICLE, Attribute.ORIENTATION, TURNED),
    sim.SetEntity(VEHICLE, Attribute.CORPOREAL, False),
    sim.Remove(ItemType.ENTITY, VEHICLE),
    sim.Remove(ItemType.OBJECT, 0),  # gravity
    sim.AddObject(sim.Turbulence.CLASS, CURRENT.encode()),
]


def decoded(kind):
    """Return a strategy for requests of a kind, as decoded by a server."""
    return requests_of(kind).map(lambda request: kind.decode(request.encode()))


def moves(request):
    """Return whether a request changes the motion of the emulated vehicle."""
    ways = []
    for asked in ((), (request,)):
        simulator = OfflineSimulator()
        simulator.scene.set_attribute(VEHICLE, Attribute.VELOCITY, (0.0, 0.5, 0.0))
        for each in asked:
            simulator.ask(each)
        simulator.step(5)
        is_there = VEHICLE in simulator.scene.entities
        ways.append([simulator.scene.attribute(VEHICLE, each) for each in Attribute] if is_there else None)
    return ways[0] != ways[1]


@pytest.mark.parametrize("request_", MOVING, ids=repr)
def test_these_move_the_vehicle(request_):
    assert moves(request_)
    assert request_.moves(VEHICLE)


@EACH_KIND
@given(st.data())
def test_every_request_that_moves_the_emulated_vehicle_is_declared(kind, data):
    request = data.draw(decoded(kind))
    assert request.moves(VEHICLE) or not moves(request)


class Server(ServedWorld):
    """Return a server with a bridge whose services always succeed."""

    def __init__(self, *, is_held, is_heard):
        super().__init__()
        self.bridge.carries_out_all = True
        if is_heard:
            self.move()
        self.hold(is_held)


def stops(request):
    """Return whether the request sets v or w to zero, which hold admits."""
    is_velocity = isinstance(request, sim.SetEntity) and request.attribute in (
        Attribute.VELOCITY,
        Attribute.ANGULAR_VELOCITY,
    )
    return is_velocity and not any(request.value)


@EACH_KIND
@pytest.mark.parametrize("is_heard", [False, True])
@given(st.data())
def test_no_request_moves_a_vehicle_on_hold(kind, is_heard, data):
    request = data.draw(decoded(kind))
    held = Server(is_held=True, is_heard=is_heard)
    answer = held.ask(request)
    if request.moves(VEHICLE):
        may_ask = {"get_entity_state", "set_entity_state"} if stops(request) else {"get_entity_state"}
        assert {name for name, _ in held.bridge.asked} <= may_ask
        assert not any(any(command.v + command.w) for command in held.commands)
    else:
        free = Server(is_held=False, is_heard=is_heard)
        given = repr(free.ask(request)), repr(free.bridge.asked)
        assert given == (repr(answer), repr(held.bridge.asked))  # where NaN is NaN


@pytest.mark.parametrize("attribute", [Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY])
def test_a_client_may_set_zero_on_hold(attribute):
    held = Server(is_held=True, is_heard=False)
    held.ask(sim.SetEntity(VEHICLE, attribute, NOWHERE))
    assert held.bridge.asked[-1][0] == "set_entity_state"


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize("request_", MOVING, ids=repr)
def test_a_refusal_on_hold_is_reported_to_the_client(request_, is_heard):
    held = Server(is_held=True, is_heard=is_heard)
    assert held.ask(request_) == ON_HOLD
    assert held.refused == 1
    held.hold(False)
    assert not isinstance(held.ask(request_), sim.Error)


def test_a_pending_call_is_dropped_when_hold_begins():
    """Setting v of a silent vehicle takes two calls: for its orientation, and for the velocity."""
    server = Server(is_held=False, is_heard=False)
    server.answers_later = True
    server.client.send(sim.SetEntity(VEHICLE, Attribute.VELOCITY, AHEAD))
    server.hold(True)
    server.answer()
    assert [event.response for event in server.client.news()] == [ON_HOLD]
    assert not server.calls
    assert [name for name, _ in server.bridge.asked] == ["get_entity_state"]
