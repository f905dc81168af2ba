# SPDX-License-Identifier: Apache-2.0
"""A client, simulator_server, services, simulator_bridge, a simulator: the sessions of both nodes, in no time."""

import pytest
from offline_simulator import LEVEL, OfflineSimulator, entity
from served_world import VEHICLE, ServedWorld
from simulator_talk import SimulatorTalk

from drone_bridge.session.session import Answer
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.services import OFFERED
from drone_bridge.simulator.codec import Attribute, CameraAttribute, ItemType
from drone_bridge.simulator.topics.services import SERVICES

BUOY, MISSING = 1, 77
STILL = sim.Turbulence((0.0,) * 3, (0.0,) * 3, 0.0, 0.0, (0.0,) * 3, (0.0,) * 3, 0.0, 0.0)


class Bridge:
    """The services of simulator_bridge, and its session before a simulator."""

    def __init__(self, simulator):
        self._talk = SimulatorTalk(stream_period=1)
        self._talk.world.usual_answer = simulator.ask
        self._talk.connect()

    def offers(self, service):
        return service in OFFERED

    def answer(self, call):
        service = OFFERED[call.name]
        try:
            work, *arguments = service.work(call.tag.request, self._talk.parameters)
        except ValueError as error:
            return Answer(False, str(error), response=SERVICES[call.name].Response(code=-1, message=str(error)))
        outcome = self._talk.outcome(self._talk.ask(work, *arguments))
        fields = service.fields(outcome.result) if outcome.is_success else {"code": outcome.result}
        response = SERVICES[call.name].Response(success=outcome.is_success, message=outcome.sentence, **fields)
        return Answer(outcome.is_success, outcome.sentence, response=response)


@pytest.fixture
def simulator():
    simulator = OfflineSimulator()
    assert simulator.add(entity(attributes=(sim.ExtendedAttribute("render", b"buoy"),))) == BUOY
    return simulator


@pytest.fixture
def world(simulator):
    return ServedWorld(bridge=Bridge(simulator))


SET = (
    (VEHICLE, Attribute.POSITION, (1.0, 2.0, 3.0)),
    (BUOY, Attribute.VELOCITY, (0.1, 0.2, 0.3)),
    (BUOY, Attribute.ACCELERATION, (0.1, 0.2, 0.3)),
    (BUOY, Attribute.ORIENTATION, (0.5, 0.5, -0.5, 0.5)),
    (BUOY, Attribute.ANGULAR_VELOCITY, (0.3, 0.2, 0.1)),
    (BUOY, Attribute.CORPOREAL, False),
)


@pytest.mark.parametrize(("number", "attribute", "value"), SET)
def test_what_is_set_is_set_and_got_back(world, simulator, number, attribute, value):
    assert world.ask(sim.SetEntity(number, attribute, value)) == sim.Ok()
    assert simulator.get(sim.GetEntity(number, attribute)).value == pytest.approx(value)
    if number == BUOY:
        assert world.ask(sim.GetEntity(number, attribute)).value == pytest.approx(value)


SAME = (
    *(sim.GetConfig(), sim.ListEntities(), sim.GetExtended(BUOY, "render"), sim.SetExtended(BUOY, "note", b"\xff\0\1")),
    *(sim.GetExtended(BUOY, "nothing"), sim.GetEntity(MISSING, Attribute.POSITION), sim.Pause()),
    *(sim.SetEntity(MISSING, Attribute.POSITION, (0.0,) * 3), sim.Remove(ItemType.ENTITY, MISSING)),
    *(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, VEHICLE, 0.5)), sim.AddObject("wind", b"")),
)


@pytest.mark.parametrize("request_", SAME, ids=lambda request: type(request).__name__)
def test_a_request_is_answered_as_by_the_simulator(world, simulator, request_):
    through, there = world.ask(request_), simulator.ask(request_)
    if isinstance(there, sim.Error):
        assert (through.code, type(through)) == (there.code, sim.Error)
    else:
        assert through == there


ADDED = (
    (entity((1.0, 2.0, 3.0)), ItemType.ENTITY),
    (sim.AddCamera(VEHICLE, LEVEL, (0.1, 0.2, 0.3), 1.5), ItemType.CAMERA),
    (sim.AddObject(sim.Turbulence.CLASS, STILL.encode()), ItemType.OBJECT),
)


@pytest.mark.parametrize(("request_", "kind"), ADDED)
def test_what_is_added_is_in_the_simulator_until_it_is_removed(world, simulator, request_, kind):
    added = world.ask(request_)
    assert added.type == kind
    assert world.ask(sim.Remove(kind, added.id)) == sim.Ok()
    assert isinstance(simulator.ask(sim.Remove(kind, added.id)), sim.Error)


def test_a_camera_of_the_simulator_is_set_there(world, simulator):
    camera = world.ask(sim.AddCamera(VEHICLE, LEVEL, (0.1, 0.2, 0.3), 1.5)).id
    assert world.ask(sim.SetCamera(camera, CameraAttribute.FOCAL_LENGTH, 2.5)) == sim.Ok()
    simulator.add(sim.StreamCamera(camera, 1, BUOY))
    simulator.get(sim.SetEntity(BUOY, Attribute.POSITION, (2.1, 0.2, 0.3)))
    view = next(event for event in simulator.step() if isinstance(event, sim.CameraData))
    assert (view.depth, view.radius) == pytest.approx((2.0, 0.2 * 2.5 / 2.0))


def test_the_simulator_runs_and_pauses_as_clients_request(world, simulator):
    control = simulator.context.control
    assert world.ask(sim.Run(0)) == sim.Ok()
    assert control.is_running
    assert world.ask(sim.Run(0)) == simulator.ask(sim.Run(0)) == sim.Error(0, "The simulator is not paused.")
    assert world.ask(sim.Pause()) == sim.Ok()
    assert not control.is_running
