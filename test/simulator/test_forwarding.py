# SPDX-License-Identifier: Apache-2.0
"""Forwarder: service calls of simulator_server to simulator_bridge, without nodes."""

import math

import pytest
from served_world import VEHICLE, ServedWorld

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, CameraAttribute
from drone_bridge.simulator.session.heading import BODY_TO_MODEL_KEY, decode_rotation
from drone_bridge.simulator.vehicle.device.world import INVALID, UNSUPPORTED
from drone_bridge.simulator.vehicle.session.forwarding import Follow
from drone_bridge.simulator.vehicle.session.mirrored_scene import UNKNOWN_STATE
from drone_bridge.wire.outgoing import UNENCODABLE

BUOY, MISSING = 3, 99
LEVEL = (1.0, 0.0, 0.0, 0.0)
NO_SIMULATOR = {"success": False, "code": -1, "message": "No simulator is connected."}
NO_SUCH_ENTITY = {"success": False, "code": 1, "message": "No entity with given ID."}
PUBLISHED = {"success": False, "code": -1, "message": "The states of entity 3 are already published."}


@pytest.fixture
def server():
    return ServedWorld()


def lists(*ids):
    return {"list_entities": {"success": True, "ids": ids, "names": [""] * len(ids)}}


def stream_of(entity):
    return sim.StreamEntity(entity, 1, (Attribute.POSITION,))


@pytest.mark.parametrize("refusal", [None, NO_SUCH_ENTITY])
def test_a_repeated_request_does_not_stream_a_missing_entity(server, refusal):
    if refusal:
        server.bridge.responses = {"stream_entity": refusal}
    for _ in range(3):
        assert server.ask(stream_of(MISSING)) == sim.Error(1, "No entity with given ID.")
    assert server.entities == [VEHICLE]
    assert not server.followed


def test_a_removed_entity_can_not_be_streamed(server):
    server.bridge.responses = {**lists(BUOY, VEHICLE), "remove": {"success": True}, "stream_entity": NO_SUCH_ENTITY}
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((BUOY, VEHICLE))
    assert server.ask(sim.Remove(sim.ItemType.ENTITY, BUOY)) == sim.Ok()
    assert server.ask(stream_of(BUOY)) == sim.Error(1, "No entity with given ID.")
    assert server.entities == [VEHICLE]


def test_only_listed_entities_exist(server):
    server.bridge.responses = lists(BUOY, VEHICLE)
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((BUOY, VEHICLE))
    server.bridge.responses = lists(VEHICLE)  # of a restarted simulator
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((VEHICLE,))
    assert server.entities == [VEHICLE]
    server.bridge.responses = lists(BUOY)  # the vehicle was removed by another client, and is silent
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((BUOY,))
    # The bridge is killed: its simulator may still be there.
    server.bridge.responses = {}
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((BUOY, VEHICLE))
    assert server.ask(sim.GetEntity(VEHICLE, 0)) == sim.Error(0, UNKNOWN_STATE)
    assert server.ask(sim.GetEntity(BUOY, 0)).code == 0


def test_without_a_state_w_does_not_reset_v(server):
    """v is set by the service then, and w on cmd_vel would set v to zero."""
    server.bridge.responses = {"get_entity_state": NO_SIMULATOR, "set_entity_state": {"success": True}}
    assert server.ask(sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, (0.0, 0.0, 1.0))) == sim.Ok()
    ((service, request),) = server.bridge.asked
    assert (service, request.set_angular_velocity) == ("set_entity_state", True)


def test_whether_the_world_runs_follows_the_simulator_s_own_answers(server):
    runs_already = {"success": False, "code": 0, "message": "The simulator is not paused."}
    for response, is_running in ((None, False), (NO_SIMULATOR, False), (runs_already, True), ({"success": True}, True)):
        server.bridge.responses = {"pause": {"success": True}}
        assert server.ask(sim.Pause()) == sim.Ok()
        assert not server.is_running
        server.bridge.responses = {"run": response}
        assert isinstance(server.ask(sim.Run(3)), sim.Ok if response == {"success": True} else sim.Error)
        assert server.is_running is is_running


def test_entity_published_by_the_bridge_is_streamed_under_its_name(server):
    server.bridge.responses = {
        "stream_entity": PUBLISHED,
        "list_entities": {"success": True, "ids": [BUOY], "names": ["red_buoy"]},
    }
    assert isinstance(server.ask(stream_of(BUOY)), sim.Added)
    assert server.followed == [Follow(BUOY, "red_buoy")]
    assert server.bridge.asked[0] == ("stream_entity", srv.StreamEntity.Request(id=BUOY, name=f"entity_{BUOY}"))


def test_added_entities_get_no_name_of_an_earlier_server(server):
    """The bridge would rename it, and the states of the other entity would be used."""
    server.bridge.responses = {"spawn": {"success": True, "id": 7}, "add_camera": {"success": True, "id": 4}}
    ball = sim.AddEntity(2.0, 0.3, (1.0, 1.0, 1.0), LEVEL, (1.0, 2.0, 3.0), LEVEL, False)
    assert server.ask(ball) == sim.Added(sim.ItemType.ENTITY, 7)
    assert server.followed == [Follow(7, "entity_7")]
    assert server.ask(sim.AddCamera(7, LEVEL, (0.0, 0.0, 0.0), 1.0, True)) == sim.Added(sim.ItemType.CAMERA, 4)
    assert [(service, request.name) for service, request in server.bridge.asked] == [("spawn", ""), ("add_camera", "")]


@pytest.mark.parametrize("failure", [NO_SIMULATOR, None])
def test_while_the_bridge_has_no_simulator_entities_come_from_topics(server, failure):
    """Visualizers treat an error as an empty list, and reconnect without closing."""
    server.bridge.responses = {"list_entities": failure}
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((VEHICLE,))


@pytest.mark.parametrize("failure", [{"list_entities": NO_SIMULATOR}, {"list_entities": None}, {}])
def test_entities_of_an_unresponsive_bridge_are_listed_as_before(server, failure):
    there = tuple(range(24, -1, -1))
    server.bridge.responses = lists(*there)
    server.ask(sim.ListEntities())
    server.bridge.responses = failure
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed(there)
    server.do(server.session.reported, sim.Spied(True, sim.ItemType.ENTITY, 25))
    server.do(server.session.reported, sim.Spied(False, sim.ItemType.ENTITY, 7))
    assert server.ask(sim.ListEntities()) == sim.EntitiesListed((25, *(each for each in there if each != 7)))


def test_without_a_bridge_the_last_configuration_is_returned(server):
    configuration = {"frequency": 50.0, "speed": 2.0, "non_real_time": False, "use_desired_thrusters": False}
    server.bridge.responses = {"get_configuration": {"success": True, **configuration}}
    configured = sim.Configured(50.0, 2.0, False, False)
    assert server.ask(sim.GetConfig()) == configured
    server.bridge.responses = {}
    assert server.ask(sim.GetConfig()) == configured


def test_a_client_learns_that_the_vehicle_is_steered_along_its_model(server):
    """A bridge knows the rotation in its own simulator, and converts."""
    server.bridge.responses = {"get_attribute": {"success": False, "message": "There is none."}}
    got = server.ask(sim.GetExtended(VEHICLE, BODY_TO_MODEL_KEY))
    assert decode_rotation(got.data).is_identity
    assert server.bridge.asked == []


def test_corporeal_is_requested_from_the_bridge(server):
    server.move()
    got = srv.GetState.Response(success=True, corporeal=False)
    got.pose.orientation.w = 1.0
    fields = {name: getattr(got, name) for name in got.get_fields_and_field_types()}
    server.bridge.responses = {"get_entity_state": fields}
    assert server.ask(sim.GetEntity(VEHICLE, Attribute.CORPOREAL)) == sim.EntityGot(Attribute.CORPOREAL, False)
    assert server.ask(sim.GetEntity(VEHICLE, Attribute.POSITION)).value == (0.0, 0.0, 0.0)
    assert [service for service, _ in server.bridge.asked] == ["get_entity_state"]


@pytest.mark.parametrize("end", ["to unsupported requests.", "ü" * 60])
def test_errors_of_the_bridge_are_truncated_for_visualizers(server, end):
    """They would treat the rest as the answer to their next request."""
    closed = f"The simulator closed the connection instead of answering EXGET, as the CUAUV server does {end}"
    server.bridge.responses = {"get_attribute": {"success": False, "message": closed}}
    error = server.ask(sim.GetExtended(VEHICLE, "render"))
    assert error.message.startswith("The simulator closed the connection")
    assert len(sim.frame(error)) <= 90


def test_an_unencodable_response_of_a_service_is_an_error(server):
    server.bridge.responses = {"get_attribute": {"success": False, "code": 1 << 40, "message": "Not today."}}
    assert server.ask(sim.GetExtended(VEHICLE, "render")) == sim.Error(0, "The answer can't be encoded.")


CURRENT = sim.Turbulence((-1.0, 0.0, 0.5), (1.0, 0.0, 2.0), -3.0, 4.0, (0.0,) * 3, (0.0,) * 3, 0.0, 0.5)


def test_turbulence_is_added_by_the_bridge_and_other_objects_are_refused(server):
    server.bridge.responses = {"add_turbulence": {"success": True, "id": 7}}
    assert server.ask(sim.AddObject("turbulence", CURRENT.encode())) == sim.Added(sim.ItemType.OBJECT, 7)
    ((_, asked),) = server.bridge.asked
    force = asked.minimum.force, asked.maximum.force  # in east, north and up
    assert [(each.x, each.y, each.z) for each in force] == [(0.0, -1.0, -2.0), (0.0, 1.0, -0.5)]
    assert (asked.minimum_force_rate, asked.maximum_force_rate) == (-3.0, 4.0)
    for class_name, data in (("wind", b""), ("turbulence", b"short")):
        assert server.ask(sim.AddObject(class_name, data)).code == 0
    server.bridge.responses["add_trigger"] = {"success": True, "id": 7}
    assert server.ask(sim.AddTrigger(sim.BytecodeTrigger(b"code"))).code == UNSUPPORTED
    assert len(server.bridge.asked) == 1


def test_a_quaternion_of_a_client_may_have_any_nonzero_length(server):
    """In a service's request zeros mean no rotation."""
    services = ("set_entity_state", "spawn", "add_camera", "set_camera")
    server.bridge.responses = {service: {"success": True, "id": 7} for service in services}
    for length in (2.0, 0.0):
        q, nowhere = (length, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for request in (
            sim.SetEntity(BUOY, Attribute.ORIENTATION, q),
            sim.AddEntity(1.0, 1.0, (1.0, 1.0, 1.0), q, nowhere, q),
            sim.AddCamera(BUOY, q, nowhere, 1.0),
            sim.SetCamera(7, sim.CameraAttribute.ORIENTATION, q),
        ):
            assert isinstance(server.ask(request), sim.Error) is (length == 0.0)
    poses = [request.pose.orientation for _, request in server.bridge.asked]
    assert [q.x**2 + q.y**2 + q.z**2 + q.w**2 for q in poses] == pytest.approx([1.0] * 4)


INF, ORIGIN = math.inf, (0.0, 0.0, 0.0)
STRONG = sim.Turbulence(ORIGIN, (0.0, 2.0, INF), 0.0, 0.0, ORIGIN, ORIGIN, 0.0, 0.0)


@pytest.mark.parametrize(
    ("request_", "code", "numbers"),
    [
        (sim.SetEntity(VEHICLE, Attribute.POSITION, (INF, 0.0, 2.0)), INVALID, "(inf, 0, 2)"),
        (sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.0, 1.0, -INF)), INVALID, "(0, 1, -inf)"),
        (sim.SetEntity(BUOY, Attribute.ORIENTATION, (1.0, INF, 0.0, 0.0)), INVALID, "(1, inf, 0, 0)"),
        (sim.SetEntity(BUOY, Attribute.ANGULAR_VELOCITY, (0.0, math.nan, 0.5)), INVALID, "(0, nan, 0.5)"),
        (sim.AddEntity(1.0, 0.3, (1.0, 1.0, 1.0), LEVEL, (1.0, -INF, 3.0), LEVEL, False), 0, "(1, -inf, 3)"),
        (sim.AddCamera(VEHICLE, LEVEL, ORIGIN, INF, True), INVALID, "inf"),
        (sim.SetCamera(0, CameraAttribute.POSITION, (0.0, INF, 0.0)), INVALID, "(0, inf, 0)"),
        (sim.AddTrigger(sim.PathTrigger(VEHICLE, (INF, 1.0, 0.0), ORIGIN, 1.0)), INVALID, "(inf, 1, 0)"),
        (sim.AddObject("turbulence", STRONG.encode()), 0, "(0, 2, inf)"),
    ],
)
def test_non_finite_numbers_are_refused_in_the_client_s_units(server, request_, code, numbers):
    server.bridge.carries_out_all = True
    error = server.ask(request_)
    assert error.code == code
    assert numbers in error.message
    assert not [service for service, _ in server.bridge.asked if service != "list_entities"]


def test_zero_for_a_silent_vehicle_is_published_but_refused(server):
    """Its bridge may be gone, so that nothing stops it."""
    for value in ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)):
        assert server.ask(sim.SetEntity(VEHICLE, Attribute.VELOCITY, value)) == sim.Error(0, UNKNOWN_STATE)
    assert [command.v for command in server.commands] == [(0.0, 0.0, 0.0)]


def test_unencodable_stream_data_are_dropped(server):
    """x, y, radius and depth are specified in single precision, and in double precision in messages."""
    server.bridge.responses = {"stream_camera": {"success": True, "stream_id": 7}}
    assert server.ask(sim.StreamCamera(4, 1, BUOY)) == sim.Added(sim.ItemType.CAMERA_STREAM, 7)
    for number in (1e300, 2.0):
        server.do(server.session.reported, sim.CameraData(7, number, 0.0, 0.25, 2.0))
    assert [each.x for each in server.client.news()] == [2.0]
    (note,) = [note for note in server.notes if note.counter == UNENCODABLE]
    assert note.sentence.startswith("CameraData can't be sent: ")


def test_a_key_with_invalid_utf_8_is_converted_for_the_bridge(server):
    """A call with invalid UTF-8 would fail, and disconnect all clients."""
    server.bridge.responses = {"get_attribute": {"success": False, "code": 0, "message": "There is none."}}
    assert server.ask(sim.GetExtended(VEHICLE, "\udc80")) == sim.Error(0, "There is none.")
    ((_, asked),) = server.bridge.asked
    assert asked.key.encode() == "\N{REPLACEMENT CHARACTER}".encode()
