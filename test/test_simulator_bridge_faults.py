# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge when things go wrong: silence, garbage, a simulator that goes and comes back, several clients."""

import contextlib
import time

import pytest
from builtin_interfaces.msg import Time
from diagnostics import status, wait_for_count
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import module_ros, wait_until
from simulator_fixtures import (
    ANSWER_TIMEOUT_S,
    BUOY,
    FRONT,
    NEAR,
    VEHICLE,
    bridge,
    call,
    make_peer,
    shared_bridge,
    two_entities,
)
from simulator_peer import SILENCE, STREAMED, byte_by_byte

from drone_bridge import srv
from drone_bridge.msg import ExtendedAttribute, TriggerEvent
from drone_bridge.simulator import codec as sim

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

ros = module_ros()
shared, peer = shared_bridge()


# Silence.


def test_an_unanswered_request_fails_and_the_simulator_is_reconnected(ros, peer):
    peer.answers[sim.Reassure] = SILENCE
    before = status(ros)
    response = call(ros, "reassure", srv.SimulatorRequest)
    assert (response.success, response.code) == (False, -1)
    assert response.message == f"The simulator has not answered REASSURE within {ANSWER_TIMEOUT_S:g} s."
    del peer.answers[sim.Reassure]
    wait_until(lambda: not {peer.requests_, peer.streams} & set(peer.clients), "the end of the connections")
    peer.wait_until_settled()
    wait_for_count(ros, "lost connections", 1, before)
    assert call(ros, "reassure", srv.SimulatorRequest).success


def test_a_simulator_that_is_slow_is_not_asked_again_before_it_has_answered(ros):
    asked = []
    with contextlib.closing(make_peer()) as slow, bridge(slow, poll_period=0.05, request_timeout=60.0):
        slow.wait_until_settled()
        slow.answers[sim.ListEntities] = asked.append
        wait_until(lambda: asked, "a question")
        time.sleep(0.3)  # six periods
        assert len(asked) == 1


# Nonsense.


def test_garbage_is_counted_and_logged(ros, peer):
    before = status(ros)
    peer.send_bytes(peer.streams, b"\x0d\0\0\0\0")
    values = wait_for_count(ros, "rejected input", 1, before)
    assert "The simulator sent a message of type 13, which it does not have." in values["last error"]
    assert values["lost connections"] == before["lost connections"]


def test_data_may_come_before_their_stream_is_known_and_events_without_a_name(ros, peer):
    events = ros.subscribe(TriggerEvent, "trigger_events")

    def refuse_nothing(request):
        peer.send(peer.clients[-1], sim.Triggered(99))
        return sim.Ok()

    peer.answers[sim.Run] = refuse_nothing
    for client in peer.clients:
        peer.step(client, stream=55)
    wait_until(lambda: peer.send(peer.streams, sim.Triggered(77)) or len(events), "an event")
    assert events.wait().trigger_id == 77
    assert {peer.requests_, peer.streams} <= set(peer.clients)


def test_a_stream_with_other_attributes_than_asked_for_is_not_published(ros, peer):
    odom = ros.subscribe(Odometry, "odom")
    wait_until(lambda: peer.step(peer.streams) or len(odom), "odometry")
    peer.send(peer.streams, sim.EntityData(VEHICLE, (0,), ((1.0, 2.0, 3.0),)))
    peer.step(peer.streams, {0: (9.0, 0.0, 0.0)})
    north = [odom.wait().pose.pose.position.y]
    while north[-1] != 9.0:
        north.append(odom.wait().pose.pose.position.y)
    assert set(north) == {0.0, 9.0}


EMPTY_VALUE = ExtendedAttribute(key="note")
EMPTY_KEY = ExtendedAttribute(text="a note")


@pytest.mark.parametrize(
    ("name", "service", "fields"),
    [
        ("set_attribute", srv.SetAttribute, {"attribute": EMPTY_VALUE}),
        ("add_trigger", srv.AddTrigger, {"name": "code", "type": 2, "code": [1, 2]}),
        ("set_attribute", srv.SetAttribute, {"attribute": EMPTY_KEY}),
        ("get_attribute", srv.GetAttribute, {}),
        ("spawn", srv.Spawn, {"attributes": [EMPTY_VALUE]}),
        ("spawn", srv.Spawn, {"attributes": [EMPTY_KEY]}),
    ],
)
def test_requests_on_which_real_simulators_hang_up_are_not_sent(ros, peer, name, service, fields):
    response = call(ros, name, service, **fields)
    assert (response.success, response.code) == (False, -1)
    does_not = "does not implement this request" if name == "add_trigger" else "closes the connection on an empty key"
    assert response.message.startswith(f"The CUAUV server {does_not}")
    assert {peer.requests_, peer.streams} <= set(peer.clients)
    assert peer.requests(sim.AddEntity) == []
    assert sim.AddTrigger(sim.BytecodeTrigger(b"\1\2")) not in peer.requests(sim.AddTrigger)
    assert not {getattr(request, "key", None) for request in peer.requests_.requests} & {"", "note"}


def test_an_item_whose_request_timed_out_is_not_restored(ros, peer):
    peer.answers[sim.StreamEntity] = SILENCE
    response = call(ros, "stream_entity", srv.StreamEntity, id=VEHICLE + 7)
    assert not response.success
    assert response.message == f"The simulator has not answered ESTREAM within {ANSWER_TIMEOUT_S:g} s."
    del peer.answers[sim.StreamEntity]
    wait_until(lambda: peer.streams not in peer.clients, "the end of the connection that got no answer")
    _, streams = peer.wait_until_settled()
    assert [request.id for request in streams.asked_for(sim.StreamEntity)] == [VEHICLE, BUOY]


# Going and coming back.


@pytest.fixture
def simulations(ros, peer):
    """When simulations began, from the present one on."""
    inbox = ros.subscribe(Time, "simulation_started", LATCHED)
    inbox.wait()
    inbox.clear()
    return inbox


def test_in_a_new_simulation_there_is_what_parameters_name_and_nothing_that_services_added(ros, peer, simulations):
    ball = call(ros, "spawn", srv.Spawn, name="ball")
    added = call(ros, "add_camera", srv.AddCamera, name="down", entity_id=1, targets=[0])
    trigger = call(ros, "add_trigger", srv.AddTrigger, name="gate", type=3, distance=1.0)
    assert [each.success for each in (ball, added, trigger)] == [True] * 3
    wait_until(lambda: sim.StreamEntity(2, 1, STREAMED) in peer.streams.requests, "the stream of the ball")
    requests, streams = peer.restart(entities=two_entities())
    wait_until(lambda: streams.asked_for(sim.StreamCamera), "the stream of the camera")
    assert [request.entity for request in requests.asked_for(sim.AddCamera)] == [0]
    assert [request.id for request in streams.asked_for(sim.StreamEntity)] == [VEHICLE, BUOY]
    assert [type(request.trigger) for request in streams.asked_for(sim.AddTrigger)] == [sim.CollisionTrigger]
    assert streams.asked_for(sim.StreamCamera) == [sim.StreamCamera(FRONT, 2, BUOY)]
    assert list(call(ros, "list_entities", srv.ListEntities).names) == ["vehicle", "buoy"]
    assert simulations.wait().sec > 0
    events = ros.subscribe(TriggerEvent, "trigger_events")
    wait_until(lambda: peer.send(streams, sim.Triggered(NEAR)) or len(events), "an event")
    assert events.wait().name == "near"
    assert call(ros, "add_camera", srv.AddCamera, name="down", entity_id=1).success  # which is there no longer
    assert call(ros, "remove", srv.RemoveItem, type=2, id=1).success


def test_the_same_simulation_goes_on_after_a_reconnect(ros, peer, simulations):
    wait_until(lambda: (VEHICLE, "drone_bridge.world") in peer.extended, "the simulation's mark")
    wait_until(lambda: peer.requests_.asked_for(sim.AddCamera), "the camera")
    assert call(ros, "add_trigger", srv.AddTrigger, name="gate", type=3, distance=1.0).success
    peer.hang_up()
    requests, streams = peer.wait_until_settled()
    assert requests.asked_for(sim.AddCamera) == []
    wait_until(lambda: streams.asked_for(sim.StreamCamera), "the stream of the camera")
    assert streams.asked_for(sim.StreamCamera) == [sim.StreamCamera(FRONT, 2, BUOY)]
    assert [request.id for request in streams.asked_for(sim.StreamEntity)] == [VEHICLE, BUOY]
    assert [type(request.trigger) for request in streams.asked_for(sim.AddTrigger)] == [
        sim.CollisionTrigger,
        sim.PathTrigger,
    ]
    peer.restart(entities=two_entities())
    simulations.wait()
    assert not len(simulations)  # of the one that went on nothing was said


def test_removed_items_are_not_restored(ros, peer):
    spawned = call(ros, "spawn", srv.Spawn, name="ball")
    assert call(ros, "remove", srv.RemoveItem, type=0, id=spawned.id).success
    peer.hang_up()
    _, streams = peer.wait_until_settled()
    assert [request.id for request in streams.asked_for(sim.StreamEntity)] == [VEHICLE, BUOY]


def test_refused_items_are_logged_and_requested_on_the_next_connection(ros, peer):
    before = status(ros)
    peer.restart(entities=two_entities(), answers={sim.AddTrigger: sim.Error(2, "No entity.")})
    wait_for_count(ros, "refused items", 1, before)
    _, streams = peer.restart(entities=two_entities())
    events = ros.subscribe(TriggerEvent, "trigger_events")
    wait_until(lambda: peer.send(streams, sim.Triggered(NEAR)) or len(events), "an event")
    assert events.wait().name == "near"


def test_a_simulator_without_a_vehicle_is_useful_too(ros, peer):
    peer.restart(entities={BUOY: two_entities()[BUOY]})
    assert list(call(ros, "list_entities", srv.ListEntities).ids) == [BUOY]
    report = status(ros, lambda values: "no entity 0" in values["last error"] or int(values["missing vehicle"]))
    assert report["state"] == "connected"


def test_diagnostics_have_rates_and_the_round_trip(ros, peer):
    def is_told(values):
        peer.step(peer.streams)
        streams = values.get("messages per second", "")  # of this connection, and not of the one before
        has_streams = streams.startswith("entity 0 ") and "front" in streams
        return has_streams and float(values.get("request round trip (ms)", "inf")) < 1000.0

    values = status(ros, is_told)
    assert values["configuration"] == "100 steps per second, speed 1"
    assert values["item events"] == "by asking every 0.1 s"
    assert "entity 1 in camera front 0.0" in values["messages per second"]
    assert {"steps per second", "stream messages per second", "requests per second", "outstanding requests"} <= set(
        values
    )


def test_services_without_a_simulator_return_an_error(ros):
    with Process.node("simulator_bridge", remap=("__ns:=/lonely",), port=1) as process:
        process.wait_for_line("can't be reached")
        response = call(ros, "/lonely/pause", srv.SimulatorRequest)
    assert (response.success, response.message) == (False, "There is no connection to the simulator now.")


# Parameters that make no sense.


# With an emulator, which has a world of its own.


def test_streams_and_requests_get_along_under_load(ros, peer):
    peer.split = byte_by_byte
    odom = ros.subscribe(Odometry, "odom")
    client = ros.node.create_client(srv.GetState, "simulator_bridge/get_entity_state")
    assert client.wait_for_service(5.0)
    for _ in range(10):
        future = client.call_async(srv.GetState.Request(id=0))
        wait_until(lambda future=future: peer.step(peer.streams) or future.done(), "the state", period_s=0.001)
        assert future.result().success, future.result().message
    odom.wait()
    assert {peer.requests_, peer.streams} <= set(peer.clients)
