# SPDX-License-Identifier: Apache-2.0
"""Sessions of simulator_server and simulator_bridge in a chain, with a fake clock."""

from dataclasses import astuple, is_dataclass

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
PARAMETERS = {"request_timeout": 2.0, "stream_period": 1}
STILL = sim.Turbulence((0.0,) * 3, (0.0,) * 3, 0.0, 0.0, (0.0,) * 3, (0.0,) * 3, 0.0, 0.0)


class Bridge:
    """Services of simulator_bridge, and its session with a simulator."""

    def __init__(self, simulator):
        self.talk = SimulatorTalk()
        self.talk.world.usual_answer = simulator.ask
        self.talk.connect()

    def offers(self, service):
        return service in OFFERED

    is_known = offers

    def answer(self, call):
        service = OFFERED[call.name]
        try:
            work, *arguments = service.work(call.tag.request, PARAMETERS)
        except ValueError as error:
            return Answer(False, str(error), response=SERVICES[call.name].Response(code=-1, message=str(error)))
        outcome = self.talk.outcome(self.talk.ask(work, *arguments))
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


TILTED, ROLLED = (0.5, 0.5, -0.5, 0.5), (0.8, 0.6, 0.0, 0.0)
ATTRIBUTES = (sim.ExtendedAttribute("render", b"ball"), sim.ExtendedAttribute("raw", b"\xff\0"))
CURRENT = sim.Turbulence((-1.0, 2.0, 3.0), (1.0, 2.0, 4.0), -0.5, 0.25, (-3.0, 0.0, -1.0), (3.0, 0.5, 0.0), 0.0, 1.0)
CAMERA = 0  # of the bridge
PASSED_ON = (
    sim.SetEntity(VEHICLE, Attribute.POSITION, (1.0, 2.0, 3.0)),
    sim.SetEntity(BUOY, Attribute.VELOCITY, (0.1, 0.2, 0.3)),
    sim.SetEntity(BUOY, Attribute.ACCELERATION, (0.1, 0.2, 0.3)),
    sim.SetEntity(BUOY, Attribute.ORIENTATION, TILTED),
    sim.SetEntity(BUOY, Attribute.ANGULAR_VELOCITY, (0.3, 0.2, 0.1)),
    sim.SetEntity(BUOY, Attribute.CORPOREAL, False),
    sim.AddEntity(2.0, 0.3, (1.0, 2.0, 3.0), TILTED, (4.0, 5.0, 6.0), ROLLED, False, ATTRIBUTES),
    sim.SetExtended(BUOY, "key", b"text"),
    sim.AddCamera(BUOY, TILTED, (0.1, 0.2, 0.3), 1.5, False),
    sim.SetCamera(CAMERA, CameraAttribute.ORIENTATION, ROLLED),
    sim.SetCamera(CAMERA, CameraAttribute.POSITION, (1.0, 2.0, 3.0)),
    sim.SetCamera(CAMERA, CameraAttribute.FOCAL_LENGTH, 2.5),
    sim.SetCamera(CAMERA, CameraAttribute.ENABLED, True),
    sim.AddTrigger(sim.CollisionTrigger(VEHICLE, BUOY, -1.0)),
    sim.AddTrigger(sim.SweepCollisionTrigger(VEHICLE, BUOY)),
    sim.AddTrigger(sim.PathTrigger(BUOY, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), 0.5)),
    sim.AddObject(sim.Turbulence.CLASS, CURRENT.encode()),
)


def is_near(one, other):
    """Return whether two values are equal except for rounding."""
    if is_dataclass(one):
        return type(one) is type(other) and is_near(astuple(one), astuple(other))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(is_near, one, other))
    return one == (pytest.approx(other) if isinstance(other, float) else other)


@pytest.mark.parametrize("request_", PASSED_ON, ids=lambda request: request.NAME)
def test_a_request_passes_unchanged_through_server_and_bridge(world, request_):
    asked = world.bridge.talk.asked
    before = {name: len(asked[name]) for name in asked}
    assert not isinstance(world.ask(request_), sim.Error)
    assert any(is_near(request_, sent) for name in asked for sent in asked[name][before[name] :])
    if isinstance(request_, sim.SetEntity) and request_.id == BUOY:
        assert is_near(world.ask(sim.GetEntity(BUOY, request_.attribute)).value, request_.value)


DISORDERED = sim.Turbulence((0.0, 0.0, 1.0), (0.0, 0.0, -1.0), 0.0, 0.0, (0.0,) * 3, (0.0,) * 3, 0.0, 0.0)
SAME = (
    *(sim.GetConfig(), sim.ListEntities(), sim.GetExtended(BUOY, "render"), sim.SetExtended(BUOY, "note", b"\xff\0\1")),
    *(sim.GetExtended(BUOY, "nothing"), sim.GetEntity(MISSING, Attribute.POSITION), sim.Pause()),
    *(sim.SetEntity(MISSING, Attribute.POSITION, (0.0,) * 3), sim.Remove(ItemType.ENTITY, MISSING)),
    *(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, VEHICLE, 0.5)), sim.AddObject("wind", b"")),
    sim.AddObject(sim.Turbulence.CLASS, DISORDERED.encode()),
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
def test_added_items_exist_in_the_simulator_until_their_removal(world, simulator, request_, kind):
    added = world.ask(request_)
    assert added.type == kind
    assert world.ask(sim.Remove(kind, added.id)) == sim.Ok()
    assert isinstance(simulator.ask(sim.Remove(kind, added.id)), sim.Error)


def test_the_simulator_runs_and_pauses_as_clients_request(world, simulator):
    control = simulator.context.control
    assert world.ask(sim.Run(0)) == sim.Ok()
    assert control.is_running
    assert world.ask(sim.Run(0)) == simulator.ask(sim.Run(0)) == sim.Error(0, "The simulator is not paused.")
    assert world.ask(sim.Pause()) == sim.Ok()
    assert not control.is_running
