# SPDX-License-Identifier: Apache-2.0
"""Services of simulator_bridge: their requests and answers, without node or process."""

import asyncio
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from geometry_msgs.msg import Point, Pose, Twist, Vector3
from simulator_talk import BUOY, VEHICLE, SimulatorTalk
from simulator_world import STILL, UPRIGHT

from drone_bridge.msg import ExtendedAttribute
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.services import OFFERED, SimulatorServices
from drone_bridge.simulator.codec import Attribute, CameraAttribute, ItemType
from drone_bridge.simulator.topics.services import SERVICES

PARAMETERS = {"request_timeout": 2.0, "stream_period": 1}


@pytest.fixture
def talk():
    """Return a talk whose simulator has answered the first requests."""
    talk = SimulatorTalk()
    talk.connect()
    for asked in talk.asked.values():
        asked.clear()
    return talk


def call(talk, name, /, **fields):
    """Call a service. Return its outcome and the fields of a successful response."""
    work, *arguments = OFFERED[name].work(SERVICES[name].Request(**fields), PARAMETERS)
    outcome = talk.outcome(talk.ask(work, *arguments))
    return outcome, OFFERED[name].fields(outcome.result) if outcome.is_success else {}


def requests(talk, kind):
    return [request for name in talk.asked for request in talk.of(kind, name)]


def near(*values):
    return pytest.approx(values, abs=1e-9)


def test_all_services_are_offered():
    assert OFFERED.keys() == SERVICES.keys()


NORTH = Pose(position=Point(x=1.0, y=2.0, z=3.0))
NORTH.orientation.z = NORTH.orientation.w = 0.5**0.5
TURBULENCE = sim.Turbulence((0.0,) * 3, (0.0,) * 3, -10.0, 10.0, (0.0,) * 3, (0.0,) * 3, -1.0, 1.0)

OK = sim.Ok()
CONFIGURATION = {"frequency": 50.0, "speed": 2.0, "non_real_time": True, "use_desired_thrusters": False}
LISTED = {"ids": [0, 1, 9], "names": ["vehicle", "buoy", ""]}
FOCUS = {"id": 0, "set_focal_length": True, "focal_length": 2.0}
TOUCH = {"name": "touch", "type": 1, "entity_a": 0, "entity_b": 1}
STREAMED = {"camera_id": 5, "target_id": 1, "period": 3}
HI, ODD = ExtendedAttribute(key="k", text="hi", data=list(b"hi")), ExtendedAttribute(key="k", data=[0, 255])

SIMPLE = [
    # name, fields, the request on the wire, the answer, the response
    ("reassure", {}, sim.Reassure(), OK, {}),
    ("pause", {}, sim.Pause(), OK, {}),
    ("run", {"steps": 3}, sim.Run(3), OK, {}),
    ("get_configuration", {}, sim.GetConfig(), sim.Configured(50.0, 2.0, True, False), CONFIGURATION),
    ("remove", {"type": 1, "id": 7}, sim.Remove(1, 7), OK, {}),
    ("remove", {"type": 4, "id": 7}, sim.Remove(4, 7), OK, {}),
    ("list_entities", {}, sim.ListEntities(), sim.EntitiesListed((0, 1, 9)), LISTED),
    ("get_attribute", {"id": 1, "key": "k"}, sim.GetExtended(1, "k"), sim.ExtendedGot("k", b"hi"), {"attribute": HI}),
    ("set_attribute", {"id": 1, "attribute": ODD}, sim.SetExtended(1, "k", b"\0\xff"), OK, {}),
    ("set_camera", FOCUS, sim.SetCamera(0, CameraAttribute.FOCAL_LENGTH, 2.0), OK, {}),
    ("stream_camera", STREAMED, sim.StreamCamera(5, 3, 1), sim.Added(ItemType.CAMERA_STREAM, 8), {"stream_id": 8}),
    ("add_trigger", TOUCH, sim.AddTrigger(sim.SweepCollisionTrigger(0, 1)), sim.Added(ItemType.TRIGGER, 6), {"id": 6}),
    # the ID by which the CUAUV server removes it
    ("add_turbulence", {}, sim.AddObject("turbulence", TURBULENCE.encode()), sim.Added(ItemType.OBJECT, 3), {"id": 4}),
]


@pytest.mark.parametrize(("name", "fields", "request_", "answer", "expected"), SIMPLE)
def test_a_service_sends_its_request_and_returns_the_answer(talk, name, fields, request_, answer, expected):
    talk.world.answers[type(request_)] = sim.Error(5, "Not\x1b today.")
    outcome, _ = call(talk, name, **fields)
    assert (outcome.is_success, outcome.result, outcome.sentence) == (False, 5, r"Not\x1b today.")
    talk.world.answers[type(request_)] = answer
    outcome, got = call(talk, name, **fields)
    assert outcome.is_success, outcome.sentence
    response = SERVICES[name].Response(**got)  # converted to the types of its fields
    for field, value in expected.items():
        assert (list(getattr(response, field)) if isinstance(value, list) else getattr(response, field)) == value
    assert request_ in requests(talk, type(request_))


def setting(attribute, value, **fields):
    return "set_entity_state", {"id": VEHICLE, **fields}, sim.SetEntity(VEHICLE, attribute, value)


MOVING = [
    setting(Attribute.POSITION, (2.0, 1.0, -3.0), set_position=True, pose=NORTH),
    setting(Attribute.VELOCITY, near(0, 1, 0), set_velocity=True, twist=Twist(linear=Vector3(x=1.0))),
    setting(Attribute.ANGULAR_VELOCITY, near(0, 0, -1), set_angular_velocity=True, twist=Twist(angular=Vector3(z=1.0))),
    setting(Attribute.ACCELERATION, (0.0, 1.0, 0.0), set_acceleration=True, acceleration=Vector3(x=1.0)),
    setting(Attribute.ORIENTATION, near(*UPRIGHT), set_orientation=True, pose=NORTH),
    setting(Attribute.CORPOREAL, False, set_corporeal=True),
    ("remove", {"type": 0, "id": VEHICLE, "name": "entity"}, sim.Remove(0, VEHICLE)),
    ("remove", {"type": 1, "id": 0, "name": "gravity"}, sim.Remove(1, 0)),
]


@pytest.mark.parametrize(("name", "fields", "request_"), [*MOVING, *(case[:3] for case in SIMPLE)])
def test_on_hold_only_services_that_move_the_vehicle_are_refused(talk, name, fields, request_):
    talk.arbiter.is_held = True
    outcome, _ = call(talk, name, **fields)
    if request_.moves(VEHICLE):
        assert request_.NAME in outcome.sentence
    assert (request_ in requests(talk, type(request_))) == (not request_.moves(VEHICLE))


def refused(talk, name, /, **fields):
    """Return the sentence of a request that is refused before it is sent."""
    before = {peer: len(asked) for peer, asked in talk.asked.items()}
    try:
        outcome, _ = call(talk, name, **fields)
    except ValueError as error:
        sentence = str(error)
    else:
        assert not outcome.is_success
        sentence = outcome.sentence
    assert {peer: len(asked) for peer, asked in talk.asked.items()} == before
    return sentence


def test_invalid_requests_are_refused_here(talk):
    mass = refused(talk, "spawn", mass=-1.0)
    assert "mass is -1" in mass
    endless = refused(talk, "run", wait=True)
    assert "steps" in endless
    assert "sets nothing" in refused(talk, "set_entity_state", id=BUOY)
    assert "sets nothing" in refused(talk, "set_camera", id=0)
    key = refused(talk, "get_attribute", key="k" * 256)
    assert "key of GetExtended has 256 bytes, and 255 " in key


def test_an_empty_request_removes_no_vehicle(talk):
    sentence = refused(talk, "remove")
    assert "'entity'" in sentence
    assert call(talk, "remove", name="entity")[0].is_success


def test_gravity_is_removed_only_by_its_name(talk):
    sentence = refused(talk, "remove", type=ItemType.OBJECT, id=0)
    assert "'gravity'" in sentence
    assert call(talk, "remove", type=ItemType.OBJECT, id=0, name="gravity")[0].is_success
    assert requests(talk, sim.Remove) == [sim.Remove(ItemType.OBJECT, 0)]


def test_a_spawned_entity_is_a_sphere_by_default_and_is_streamed(talk):
    outcome, fields = call(talk, "spawn", name="Big Ball", pose=NORTH, mass=2.0, radius=0.5)
    assert (outcome.sentence, fields) == ("", {"id": 2})
    ball = sim.AddEntity(2.0, 0.5, (0.2,) * 3, UPRIGHT, (2.0, 1.0, -3.0), near(*UPRIGHT))
    assert requests(talk, sim.AddEntity) == [ball]
    assert sim.StreamEntity(2, 1, (0, 1, 2, 3, 4)) in talk.asked["streams"]
    assert call(talk, "list_entities")[1]["names"] == ["vehicle", "buoy", "big_ball"]


def test_an_entity_added_by_another_client_can_be_published(talk):
    talk.world.entities[7] = dict(STILL)
    _, fields = call(talk, "stream_entity", id=7, name="gate", period=4)
    assert fields == {"stream_id": 2}
    assert talk.asked["streams"] == [sim.StreamEntity(7, 4, (0, 1, 2, 3, 4))]


def test_a_camera_is_added_with_streams_of_its_targets(talk):
    fields = {"name": "down", "entity_id": 0, "targets": [1], "period": 5, "pose": NORTH}
    assert call(talk, "add_camera", **fields)[1] == {"id": 1}
    (added,) = requests(talk, sim.AddCamera)
    assert (added.entity, added.position) == (0, (1.0, -2.0, -3.0))
    assert talk.asked["streams"][-1] == sim.StreamCamera(1, 5, 1)


class SuspendedNode:
    """Node that was just suspended: pending requests may be stale."""

    executor, parameters = None, PARAMETERS

    def __init__(self, talk):
        self.talk, self.services = talk, {}

    def create_service(self, kind, name, serve, callback_group):
        self.services[name.removeprefix("~/")] = serve

    def check_age(self, name):
        raise ValueError("stale")

    def post(self, work, *, is_kept):
        assert is_kept  # the caller waits
        self.talk.take(work(self.talk.now_s))
        return True

    def settle(self):
        for outcome in self.talk.outcomes():
            outcome.request.finish(outcome.is_success, outcome.sentence, outcome.result)

    def call(self, name):
        """Return the response of a service, called while the node was suspended."""
        coroutine = self.services[name](SERVICES[name].Request(), SERVICES[name].Response())
        try:
            coroutine.send(None)
            self.settle()
            coroutine.send(None)
        except StopIteration as returned:
            return returned.value
        raise AssertionError(f"{name} does not respond.")


READING = {"reassure", "get_configuration", "list_entities", "get_entity_state", "get_attribute"}


def test_after_a_stall_only_pausing_and_reading_services_are_executed(talk):
    talk.world.answers[sim.GetExtended] = sim.ExtendedGot("", b"")
    talk.world.is_cuauv_server = False  # with the empty key of the request
    node = SuspendedNode(talk)
    SimulatorServices(node, lambda: talk.session)
    talk.stall(1.0)
    carried_out = {name for name in SERVICES if node.call(name).success}
    assert carried_out == {"pause"} | READING
    assert talk.of(sim.Pause) == [sim.Pause()]


def test_a_call_that_is_refused_has_a_reason():
    refusing = SimpleNamespace(_ask=Mock(side_effect=ValueError("No simulator is connected.")))
    served = SimulatorServices._serve(refusing, "pause", SERVICES["pause"].Request(), SERVICES["pause"].Response())
    response = asyncio.run(served)
    assert (response.success, response.message) == (False, "No simulator is connected.")
