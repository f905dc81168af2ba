# SPDX-License-Identifier: Apache-2.0
"""The services of simulator_bridge: each becomes its request, and the answer comes back."""

import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped, Twist, Vector3
from ros_session import module_ros, wait_until
from simulator_fixtures import ANSWER_TIMEOUT_S, BUOY, VEHICLE, call, shared_bridge
from simulator_peer import UPRIGHT
from std_srvs.srv import SetBool

from drone_bridge import srv
from drone_bridge.msg import CameraView, ExtendedAttribute
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, CameraAttribute, ItemType

ros = module_ros()
shared, peer = shared_bridge({"closes_on": set()})


def near(*values):
    return pytest.approx(values, abs=1e-9)


NORTH = Pose(position=Point(x=1.0, y=2.0, z=3.0))
NORTH.orientation.z = NORTH.orientation.w = 0.5**0.5
TURBULENCE = sim.Turbulence((0.0,) * 3, (0.0,) * 3, -10.0, 10.0, (0.0,) * 3, (0.0,) * 3, -1.0, 1.0)

SIMPLE = [
    # name, service, its fields, the request on the wire, the answer, what comes back
    ("reassure", srv.SimulatorRequest, {}, sim.Reassure(), sim.Ok(), {}),
    ("pause", srv.SimulatorRequest, {}, sim.Pause(), sim.Ok(), {}),
    ("run", srv.Run, {"steps": 3}, sim.Run(3), sim.Ok(), {}),
    (
        "get_configuration",
        srv.GetConfiguration,
        {},
        sim.GetConfig(),
        sim.Configured(50.0, 2.0, True, False),
        {"frequency": 50.0, "speed": 2.0, "non_real_time": True, "use_desired_thrusters": False},
    ),
    ("remove", srv.RemoveItem, {"type": 1, "id": 7}, sim.Remove(1, 7), sim.Ok(), {}),
    ("remove", srv.RemoveItem, {"type": 4, "id": 7}, sim.Remove(4, 7), sim.Ok(), {}),
    (
        "list_entities",
        srv.ListEntities,
        {},
        sim.ListEntities(),
        sim.EntitiesListed((0, 1, 9)),
        {"ids": [0, 1, 9], "names": ["vehicle", "buoy", ""]},
    ),
    (
        "get_attribute",
        srv.GetAttribute,
        {"id": 1, "key": "k"},
        sim.GetExtended(1, "k"),
        sim.ExtendedGot("k", b"hi"),
        {"attribute": ExtendedAttribute(key="k", text="hi", data=list(b"hi"))},
    ),
    (
        "set_attribute",
        srv.SetAttribute,
        {"id": 1, "attribute": ExtendedAttribute(key="k", data=[0, 255])},
        sim.SetExtended(1, "k", b"\0\xff"),
        sim.Ok(),
        {},
    ),
    (
        "set_camera",
        srv.SetCamera,
        {"id": 5, "set_focal_length": True, "focal_length": 2.0},
        sim.SetCamera(5, CameraAttribute.FOCAL_LENGTH, 2.0),
        sim.Ok(),
        {},
    ),
    (
        "stream_camera",
        srv.StreamCamera,
        {"camera_id": 5, "target_id": 1, "period": 3},
        sim.StreamCamera(5, 3, 1),
        sim.Added(ItemType.CAMERA_STREAM, 8),
        {"stream_id": 8},
    ),
    (
        "add_trigger",
        srv.AddTrigger,
        {"name": "touch", "type": 1, "entity_a": 0, "entity_b": 1},
        sim.AddTrigger(sim.SweepCollisionTrigger(0, 1)),
        sim.Added(ItemType.TRIGGER, 6),
        {"id": 6},
    ),
    (
        "add_turbulence",
        srv.AddTurbulence,
        {},
        sim.AddObject("turbulence", TURBULENCE.encode()),
        sim.Added(ItemType.OBJECT, 3),
        {"id": 4},  # under which the CUAUV server removes it
    ),
]


@pytest.mark.parametrize(
    ("name", "service", "fields", "request_", "answer", "expected"), SIMPLE, ids=[case[0] for case in SIMPLE]
)
def test_a_service_becomes_its_request_and_gets_its_answer(
    ros, peer, name, service, fields, request_, answer, expected
):
    peer.answers[type(request_)] = answer
    response = call(ros, name, service, **fields)
    assert (response.success, response.code) == (True, -1), response.message
    for field, value in expected.items():
        got = getattr(response, field)
        assert (list(got) if isinstance(value, list) else got) == value
    assert request_ in peer.requests(type(request_))


@pytest.mark.parametrize(
    ("name", "service", "fields", "request_", "answer", "expected"), SIMPLE, ids=[case[0] for case in SIMPLE]
)
def test_an_error_has_its_code_and_text(ros, peer, name, service, fields, request_, answer, expected):
    peer.answers[type(request_)] = lambda request: sim.Error(5, "Not today.")
    response = call(ros, name, service, **fields)
    assert (response.success, response.code) == (False, 5)
    assert response.message == f"The simulator refused {request_.NAME} with code 5: Not today."


@pytest.fixture
def held(ros, peer):
    assert call(ros, "hold", SetBool, data=True).success
    yield
    assert call(ros, "hold", SetBool, data=False).success


def setting(attribute, value, **fields):
    return "set_entity_state", srv.SetState, {"id": VEHICLE, **fields}, sim.SetEntity(VEHICLE, attribute, value)


MOVING = [
    setting(Attribute.POSITION, (2.0, 1.0, -3.0), set_position=True, pose=NORTH),
    setting(Attribute.VELOCITY, near(0, 1, 0), set_velocity=True, twist=Twist(linear=Vector3(x=1.0))),
    setting(Attribute.ANGULAR_VELOCITY, near(0, 0, -1), set_angular_velocity=True, twist=Twist(angular=Vector3(z=1.0))),
    setting(Attribute.ACCELERATION, (0.0, 1.0, 0.0), set_acceleration=True, acceleration=Vector3(x=1.0)),
    setting(Attribute.ORIENTATION, near(*UPRIGHT), set_orientation=True, pose=NORTH),
    setting(Attribute.CORPOREAL, False, set_corporeal=True),
    ("remove", srv.RemoveItem, {"type": 0, "id": VEHICLE}, sim.Remove(0, VEHICLE)),
    ("remove", srv.RemoveItem, {"type": 1, "id": 0, "name": "gravity"}, sim.Remove(1, 0)),
]


@pytest.mark.parametrize(("name", "service", "fields", "request_"), [*MOVING, *(case[:4] for case in SIMPLE)])
def test_on_hold_a_service_does_all_but_move_the_vehicle(ros, peer, held, name, service, fields, request_):
    response = call(ros, name, service, **fields)
    if request_.moves(VEHICLE):
        assert not response.success
        assert "is refused while the vehicle is held (the service hold was called)" in response.message
    assert (request_ in peer.requests(type(request_))) == (not request_.moves(VEHICLE))


def test_a_spawned_entity_is_published_and_can_be_removed(ros, peer):
    response = call(ros, "spawn", srv.Spawn, name="Big Ball", pose=NORTH, mass=2.0, radius=0.5)
    assert (response.success, response.id) == (True, 2), response.message
    assert peer.requests_.asked_for(sim.AddEntity) == [
        sim.AddEntity(2.0, 0.5, (0.2,) * 3, UPRIGHT, (2.0, 1.0, -3.0), near(*UPRIGHT))
    ]
    wait_until(lambda: sim.StreamEntity(2, 1, (0, 1, 2, 3, 4)) in peer.streams.requests, "its stream")
    pose = ros.subscribe(PoseStamped, "entities/big_ball/pose")
    wait_until(lambda: peer.step(peer.streams, stream=2) or len(pose), "its pose")
    assert list(call(ros, "list_entities", srv.ListEntities).names) == ["vehicle", "buoy", "big_ball"]
    assert call(ros, "remove", srv.RemoveItem, type=0, id=2).success
    del peer.entities[2]
    wait_until(lambda: ros.node.count_publishers("/entities/big_ball/pose") == 0, "the end of its topics")
    assert list(call(ros, "list_entities", srv.ListEntities).names) == ["vehicle", "buoy"]


def test_an_entity_that_somebody_else_added_can_be_published(ros, peer):
    peer.entities[7] = peer.entities[VEHICLE]
    response = call(ros, "stream_entity", srv.StreamEntity, id=7, name="gate", period=4)
    assert (response.success, response.stream_id) == (True, 2), response.message
    assert sim.StreamEntity(7, 4, (0, 1, 2, 3, 4)) in peer.streams.requests
    call(ros, "remove", srv.RemoveItem, type=0, id=7)


def test_invalid_requests_are_refused_here(ros, peer):
    assert call(ros, "spawn", srv.Spawn, mass=-1.0).message == "The mass is -1, and has to be finite and more than 0."
    response = call(ros, "run", srv.Run, wait=True)
    assert (response.success, response.message) == (
        False,
        "An endless run can't be waited for: set steps, or wait to false.",
    )
    assert call(ros, "set_entity_state", srv.SetState, id=BUOY).message == "The request sets nothing."
    assert not any(request.id == BUOY for request in peer.requests(sim.SetEntity))
    assert peer.requests(sim.AddEntity) + peer.requests(sim.Run) == []


def test_an_object_has_the_id_that_a_simulator_by_the_document_gives_it(ros, peer):
    peer.is_cuauv_server = False
    peer.answers[sim.AddObject] = sim.Added(ItemType.OBJECT, 3)
    assert call(ros, "add_turbulence", srv.AddTurbulence).id == 3


def test_gravity_is_removed_only_by_its_name(ros, peer):
    refused = call(ros, "remove", srv.RemoveItem, type=ItemType.OBJECT, id=0)
    assert (refused.success, refused.message) == (
        False,
        "Object 0 is gravity: it is removed only if the request's name is 'gravity'.",
    )
    assert not peer.requests(sim.Remove)
    assert call(ros, "remove", srv.RemoveItem, type=ItemType.OBJECT, id=0, name="gravity").success
    assert peer.requests(sim.Remove) == [sim.Remove(ItemType.OBJECT, 0)]


def test_requests_on_which_the_simulator_would_hang_up_are_refused_here(ros, peer):
    data = ExtendedAttribute(key="k", data=[0] * 1020)
    response = call(ros, "set_attribute", srv.SetAttribute, id=BUOY, attribute=data)
    assert (response.success, response.code) == (False, -1)
    assert response.message == "SetExtended has 1030 bytes, and the simulator takes 1024."
    assert call(ros, "reassure", srv.SimulatorRequest).success
    response = call(ros, "get_attribute", srv.GetAttribute, key="k" * 256)
    assert response.message == "The key of GetExtended has 256 bytes, and 255 are allowed."


def test_the_state_is_all_attributes(ros, peer):
    peer.entities[1] |= {Attribute.POSITION: (1.0, 2.0, 3.0), Attribute.VELOCITY: (1.0, 0.0, 0.0)}
    response = call(ros, "get_entity_state", srv.GetState, id=1)
    assert response.success, response.message
    assert (response.pose.position.x, response.pose.position.y, response.pose.position.z) == (2.0, 1.0, -3.0)
    assert response.twist.linear.x == pytest.approx(1.0)  # it looks north, and moves there
    assert response.corporeal


def test_the_state_can_be_set_in_parts(ros, peer):
    velocity = Twist(linear=Vector3(x=1.0), angular=Vector3(z=1.0))
    fields = {"set_position": True, "set_velocity": True, "set_angular_velocity": True, "set_corporeal": True}
    response = call(ros, "set_entity_state", srv.SetState, id=1, pose=NORTH, twist=velocity, corporeal=False, **fields)
    assert response.success, response.message
    told = [request for request in peer.requests_.asked_for(sim.SetEntity) if request.id == BUOY]
    assert [(request.attribute, request.value) for request in told] == [
        (Attribute.POSITION, (2.0, 1.0, -3.0)),
        (Attribute.VELOCITY, near(1, 0, 0)),  # in its own frame, and it looks north
        (Attribute.ANGULAR_VELOCITY, (0.0, 0.0, -1.0)),
        (Attribute.CORPOREAL, False),
    ]
    peer.answers[sim.SetEntity] = lambda request: sim.Error(1) if request.attribute == 1 else sim.Ok()
    response = call(ros, "set_entity_state", srv.SetState, id=1, **fields)
    assert (response.success, response.code) == (False, 1)


def test_a_camera_streams_whom_it_looks_for(ros, peer):
    views = ros.subscribe(CameraView, "camera_view")
    first = sim.CameraData(0, 0.0, 0.0, 0.0, 1.0)
    wait_until(lambda: peer.send(peer.streams, first) or len(views), "a view by the first camera")
    response = call(ros, "add_camera", srv.AddCamera, name="down", entity_id=0, targets=[1], period=5, pose=NORTH)
    assert (response.success, response.id) == (True, 1), response.message
    wait_until(lambda: sim.StreamCamera(1, 5, 1) in peer.streams.requests, "its stream")
    data = sim.CameraData(2, 0.0, 0.0, 0.0, 1.0)  # 1 is the first camera's, which is streamed anew
    peer.send(peer.streams, data)
    view = views.wait(lambda view: view.camera != "front")
    assert (view.camera, view.camera_id, view.header.frame_id) == ("down", 1, "s1/down")
    again = call(ros, "add_camera", srv.AddCamera, name="down")
    assert (again.success, again.message) == (
        False,
        "There is a frame 'down' already, so no camera can be called 'down'.",
    )
    spawned = call(ros, "spawn", srv.Spawn, name="Down")
    listed = call(ros, "list_entities", srv.ListEntities)
    assert dict(zip(listed.ids, listed.names, strict=True))[spawned.id] == "down_2"
    call(ros, "remove", srv.RemoveItem, type=0, id=spawned.id)
    call(ros, "remove", srv.RemoveItem, type=2, id=1)
    assert call(ros, "add_camera", srv.AddCamera, name="down").success
    call(ros, "remove", srv.RemoveItem, type=2, id=2)


@pytest.mark.parametrize("order", ["completed first", "answer first"])
def test_steps_can_be_waited_for_whatever_overtakes_what(ros, peer, order):
    def run(request):
        if order == "completed first":
            peer.send(peer.requests_, sim.Completed())
            peer.step(peer.streams)
            return sim.Ok()
        peer.send(peer.requests_, sim.Ok(), sim.Completed())
        return None

    peer.answers[sim.Run] = run
    response = call(ros, "run", srv.Run, steps=1, wait=True)
    assert response.success, response.message


def test_waiting_for_steps_ends_when_there_are_none(ros, peer):
    response = call(ros, "run", srv.Run, steps=1000, wait=True)
    assert not response.success
    assert response.message == f"The simulation has made no step for {ANSWER_TIMEOUT_S:g} s."


def test_waiting_for_steps_ends_when_somebody_pauses_here(ros, peer):
    client = ros.node.create_client(srv.Run, "simulator_bridge/run")
    assert client.wait_for_service(5.0)
    waiting = client.call_async(srv.Run.Request(steps=1000, wait=True))
    wait_until(lambda: peer.requests_.asked_for(sim.Run), "RUN")
    assert call(ros, "pause", srv.SimulatorRequest).success
    wait_until(waiting.done, "the answer")
    assert waiting.result().message == "The simulation was paused before the steps were done."
