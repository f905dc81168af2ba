# SPDX-License-Identifier: Apache-2.0
"""SimulatorSession of simulator_server, in isolation, with a fake clock."""

import math
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_world import STATE, VEHICLE, ServedWorld
from simulator_requests import ANY_REQUEST
from verbs import verbs

from drone_bridge.motion.quaternions import IDENTITY
from drone_bridge.session.clients import FIRST_MESSAGE_S, KEEPS_PLACE_S, LOST, REFUSED, WHOLE_MESSAGE_S
from drone_bridge.session.session import AFTER_STALLS, SETTLING_S, Call, Close, Send
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.topics import state_at
from drone_bridge.simulator.topics.services import state_fields
from drone_bridge.simulator.vehicle.device.requests import MAX_UNREAD_BYTES
from drone_bridge.simulator.vehicle.session.forwarding import MAY_BE_STALE, UNSTEERED
from drone_bridge.simulator.vehicle.session.mirrored_scene import UNKNOWN_STATE, ConfiguredEntity
from drone_bridge.simulator.vehicle.session.simulator import CHUNK_BYTES, MAX_AHEAD_BYTES, MAX_CLIENTS, WATCH_PERIOD_S
from drone_bridge.simulator.vehicle.session.velocity_commands import NEUTRAL, STANDING

BUOY = 3
LEVEL = (1.0, 0.0, 0.0, 0.0)
V, W = Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY
FORWARD, TURN = (0.5, 0.0, 0.0), (0.0, 0.0, 0.25)
UNKNOWN = sim.Error(0, UNKNOWN_STATE)
DONE = {"success": True}
LYING = {**DONE, **state_fields(state_at(STANDING, IDENTITY), True)}
BALL = sim.AddEntity(1.0, 1.0, (1.0, 1.0, 1.0), LEVEL, STANDING, LEVEL)


def at(*position):
    return (position, *STATE[1:])


def steer(value=FORWARD, attribute=V):
    return sim.SetEntity(VEHICLE, attribute, value)


@pytest.fixture
def world():
    return ServedWorld()


@pytest.fixture
def steered(world):
    """Return a world with a steering client."""
    world.move()
    assert world.ask(steer()) == sim.Ok()
    assert world.commands.pop().v == FORWARD
    return world


@pytest.fixture
def slow():
    """Return a world with a bridge whose responses are triggered by the test."""
    world = ServedWorld()
    world.bridge.responses = {"get_attribute": {**DONE, "attribute": sim.ExtendedAttribute("key", b"data")}}
    world.answers_later = True
    return world


@pytest.fixture
def calling(slow):
    """Return a world whose client steers by the first of two calls: for the state, and with it."""
    slow.bridge.responses = {"get_entity_state": LYING, "set_entity_state": DONE}
    slow.client.send(steer())
    return slow


ASKING, TOLD = sim.GetExtended(BUOY, "key"), sim.ExtendedGot("key", b"data")


def answers(client):
    return [event.response for event in client.news()]


# Places of clients.


def test_a_new_client_replaces_an_idle_one_and_is_refused_only_without_one(world):
    others = [world.connect(str(number)) for number in range(MAX_CLIENTS - 1)]
    world.run(KEEPS_PLACE_S)
    for client in (world.client, *others[1:]):
        assert client.ask(sim.Reassure()) == sim.Ok()
    assert world.connect("late").ask(sim.Reassure()) == sim.Ok()
    assert world.connect("too late").is_closed
    assert [client.peer for client in world.clients if client.is_closed] == ["0", "too late"]
    assert (world.counted(LOST), world.counted(REFUSED)) == (1, 1)


@pytest.mark.parametrize(("said", "within_s"), [(b"", FIRST_MESSAGE_S), (b"\3\0\0", WHOLE_MESSAGE_S)])
def test_a_client_times_out_without_a_first_or_complete_request(world, said, within_s):
    world.client.say(said)
    world.run(within_s - 1.0)
    assert not world.client.is_closed
    world.client.say(b"\0"[: len(said)])  # however its bytes trickle
    world.run(1.1)
    assert world.client.is_closed


def test_a_client_that_is_silent_between_requests_stays(world):
    world.ask(sim.Reassure())
    world.run(10 * FIRST_MESSAGE_S)
    assert world.ask(sim.Reassure()) == sim.Ok()


def test_requests_before_garbage_are_answered(world):
    world.client.say(world.client.wire.send(sim.Reassure()) + b"\x63\0\0\0\0")
    assert answers(world.client) == [sim.Ok()]
    assert world.client.is_closed


@given(st.lists(st.binary(max_size=40) | ANY_REQUEST.map(sim.frame), max_size=20), st.booleans())
def test_any_bytes_are_answered_or_end_their_client(chunks, has_bridge):
    world = ServedWorld()
    world.bridge.carries_out_all = has_bridge
    world.move()
    peer = world.client.peer
    world.clients.clear()  # the client does not read
    for chunk in chunks:
        world.do(world.session.receive, chunk, peer)
        world.run(0.01)
    assert world.connect("bob").ask(sim.Reassure()) == sim.Ok()


def test_the_queue_of_a_client_is_bounded(world):
    """Repeated requests for large answers in one chunk would fill it."""
    world.ask(sim.SetExtended(VEHICLE, "large", bytes(1 << 19)))
    world.move()
    world.actions.clear()
    world.client.send(*[sim.GetExtended(VEHICLE, "large")] * 30)
    assert world.client.is_closed
    assert sum(len(action.data) for action in world.actions if isinstance(action, Send)) <= MAX_UNREAD_BYTES


def test_long_requests_and_many_at_once_may_come_in_pieces(world):
    for requests in ([sim.SetExtended(VEHICLE, "long", bytes(1000))], [sim.GetConfig()] * 1000):
        data = b"".join(map(world.client.wire.send, requests))
        for start in range(0, len(data), CHUNK_BYTES):
            world.client.say(data[start : start + CHUNK_BYTES])
        assert len(answers(world.client)) == len(requests)


# The world.


def test_a_visualizer_does_not_draw_silent_entities(world):
    missing = sim.Error(0, "No extended entity attribute with given key.")
    assert world.ask(sim.ListEntities()).ids == (VEHICLE,)
    assert world.ask(sim.GetExtended(VEHICLE, "render")) == missing
    assert len(sim.frame(missing)) <= 90  # what it has room for
    world.move(at(1.0, 2.0, 3.0))
    assert world.ask(sim.GetExtended(VEHICLE, "render")).data == b"vehicle"
    assert world.ask(sim.GetEntity(VEHICLE, Attribute.POSITION)).value == (1.0, 2.0, 3.0)


def test_cameras_and_triggers_are_answered_from_topics():
    world = ServedWorld(others=[ConfiguredEntity(BUOY, 0.15, "red_buoy")])
    client = world.client
    assert client.ask(sim.ListEntities()).ids == (BUOY, VEHICLE)
    assert client.ask(sim.AddCamera(VEHICLE, LEVEL, STANDING, 1.0)) == sim.Added(ItemType.CAMERA, 0)
    client.ask(sim.StreamCamera(0, 1, BUOY))
    near = client.ask(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, BUOY, 3.0))).id
    world.move(at(2.0, 0.0, 0.0), BUOY)
    world.move()
    (view,) = [event for event in client.events if isinstance(event, sim.CameraData)]
    assert (view.x, view.y, view.radius, view.depth) == pytest.approx((0.0, 0.0, 0.075, 2.0))
    assert sim.Triggered(near) in client.news()
    world.move(at(20.0, 0.0, 0.0), BUOY)
    assert client.news() == [sim.Untriggered(near)]
    world.run(world.parameters.source_timeout + 0.1)
    world.move()
    assert not client.news()  # views of stale entities are not sent


def test_pausing_stops_the_vehicle_and_streams_and_running_counts_steps(steered):
    watcher = steered.connect("watcher")
    stream = steered.ask(sim.StreamEntity(VEHICLE, 1, (Attribute.POSITION,))).id
    assert steered.ask(sim.Run()).code == 0  # ROS does not wait
    assert steered.ask(sim.Pause()) == sim.Ok()
    assert steered.commands == [NEUTRAL]
    assert steered.ask(sim.Pause()).code == 0
    assert steered.ask(steer()) == sim.Ok()
    steered.move()
    assert set(steered.commands) == {NEUTRAL}
    assert not steered.client.news()
    assert steered.ask(sim.Run(3)) == sim.Ok()
    for _ in range(4):
        steered.move()
    assert [type(event) for event in steered.client.news()] == [sim.EntityData] * 3 + [sim.Completed]
    assert watcher.news() == [sim.Completed()]
    assert steered.ask(sim.Run()) == sim.Ok()
    steered.move()
    assert [event.id for event in steered.client.news()] == [stream]


def test_even_a_short_pause_stops_the_vehicle(steered):
    steered.client.send(sim.Pause(), sim.Run())
    assert steered.commands == [NEUTRAL]
    steered.client.send(steer(), sim.Pause(), sim.Run(), steer(TURN, W))
    assert [(command.v, command.w) for command in steered.commands[1:]] == [NEUTRAL[:2], (STANDING, TURN)]


def test_states_do_not_age_while_simulated_time_is_paused():
    clock = [10.0]
    world = ServedWorld(simulated_s=lambda: clock[0])
    world.move()
    world.run(10.0)
    assert isinstance(world.ask(sim.GetEntity(VEHICLE, 0)), sim.EntityGot)
    clock[0] += world.parameters.source_timeout + 0.1
    assert world.ask(sim.GetEntity(VEHICLE, 0)) == UNKNOWN


def test_a_silent_vehicle_is_reported(world):
    world.run(2 * WATCH_PERIOD_S)
    assert world.session.is_vehicle_unknown
    world.move()
    world.run(WATCH_PERIOD_S)
    assert not world.session.is_vehicle_unknown
    world.run(world.parameters.source_timeout + WATCH_PERIOD_S)
    assert world.session.is_vehicle_unknown
    world.bridge.responses = {"get_entity_state": LYING}  # the simulator is paused
    world.run(WATCH_PERIOD_S)
    assert not world.session.is_vehicle_unknown
    world.bridge.responses.clear()
    world.client.leave()
    world.run(WATCH_PERIOD_S)
    assert not world.session.is_vehicle_unknown
    assert world.session.due_s == math.inf


# Steering.


#: By the document: each request that moves or stops, or removes what moves, without the bridge's services: the velocity
#: that it commands, or the code of its refusal. Others have no effect on a vehicle.
VERBS = {
    steer(): (FORWARD, STANDING), steer(TURN, W): (FORWARD, TURN), steer(STANDING): (STANDING, STANDING),
    sim.Pause(): (STANDING, STANDING), steer((math.nan, 0.0, 0.0), W): 16, sim.Run(): 0, BALL: 0,
    sim.SetEntity(VEHICLE, Attribute.POSITION, STANDING): 1, sim.SetEntity(BUOY, V, FORWARD): 0,
    sim.Remove(ItemType.ENTITY, VEHICLE): 0, sim.Remove(ItemType.OBJECT, 0): 0, sim.AddObject("turbulence", b""): 0,
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(steered, sent, meaning):
    answer = steered.ask(sent)
    assert ([(each.v, each.w) for each in steered.commands] or [answer.code]) == meaning
    assert isinstance(answer, sim.Error) is isinstance(meaning[0], int)


def test_a_velocity_in_an_unknown_direction_is_refused(world):
    assert world.ask(steer()) == UNKNOWN
    assert (world.counted(UNSTEERED), world.commands) == (1, [])


def test_a_moving_vehicle_is_stopped_when_its_orientation_becomes_unknown(steered):
    for value, answer in ((TURN, sim.Ok()), (TURN, sim.Ok()), (TURN, UNKNOWN), (STANDING, UNKNOWN)):
        steered.run(0.4 if value == TURN else 0.0)
        assert steered.ask(steer(value, W)) == answer
    assert [(command.v, command.w) for command in steered.commands] == [(FORWARD, TURN)] * 2 + [NEUTRAL[:2]]


def test_clients_are_notified_of_the_end(steered):
    other = steered.connect("bob")
    steered.do(steered.session.end)
    assert steered.client.news() == other.news() == [sim.Completed()]
    assert steered.client.is_closed
    assert other.is_closed
    assert steered.session.is_over
    assert steered.session.due_s == math.inf


def test_right_after_a_stall_only_zero_is_accepted(steered):
    steered.bridge.responses = dict.fromkeys(("set_entity_state", "remove", "add_turbulence", "run", "pause"), DONE)
    steered.stall(0.4)  # less than the time-out
    assert not steered.commands
    still = sim.Turbulence(STANDING, STANDING, 0.0, 0.0, STANDING, STANDING, 0.0, 0.0)
    for request in (
        steer(),
        steer(TURN, W),
        sim.SetEntity(VEHICLE, Attribute.POSITION, STANDING),
        sim.Remove(ItemType.ENTITY, VEHICLE),
        sim.AddObject(sim.Turbulence.CLASS, still.encode()),
    ):
        assert steered.ask(request).message == MAY_BE_STALE
    assert not steered.bridge.asked
    assert steered.counted(AFTER_STALLS) == 5
    assert steered.ask(steer(STANDING)) == sim.Ok()
    assert steered.commands[-1].v == STANDING
    assert steered.ask(sim.Pause()) == sim.Ok()
    steered.run(SETTLING_S)
    assert steered.ask(steer()) == sim.Ok()
    assert steered.commands[-1].v == FORWARD


def test_a_long_stall_stops_the_vehicle_and_drops_no_client(steered):
    mute = steered.connect("mute")
    steered.stall(10 * FIRST_MESSAGE_S)
    assert steered.commands == [NEUTRAL]
    steered.run(1.0)
    assert not mute.is_closed


def test_a_request_with_two_calls_moves_nothing_after_a_stall_in_between(calling):
    calling.stall(10.0)
    calling.run(2 * SETTLING_S)
    calling.answer()
    assert not calling.calls
    assert [each.message for each in answers(calling.client)] == [MAY_BE_STALE]
    calling.client.send(steer(TURN, W))
    calling.answer()
    assert answers(calling.client) == [sim.Ok()]


def test_a_request_received_partly_before_a_stall_is_stale(steered):
    data = steered.client.wire.send(steer(TURN, W))
    steered.client.say(data[:-1])
    steered.stall(0.4)
    steered.run(SETTLING_S)
    steered.commands.clear()
    steered.client.say(data[-1:])
    assert answers(steered.client)[-1].message == MAY_BE_STALE
    assert not steered.commands
    assert steered.ask(steer(TURN, W)) == sim.Ok()


# Services.


@pytest.mark.parametrize("is_late", [False, True])
def test_a_velocity_set_by_a_service_for_a_disconnected_client_is_stopped(slow, is_late):
    slow.bridge.responses = {"set_entity_state": DONE}
    slow.client.send(steer(TURN, W))
    slow.run(slow.parameters.request_timeout + 0.01 if is_late else 0.0)
    slow.client.leave()
    slow.commands.clear()
    slow.answer()
    assert slow.commands == [NEUTRAL]


@pytest.mark.parametrize("end", ["end", "left"])
def test_after_the_end_of_session_or_client_no_further_call_is_made(calling, end):
    if end == "end":
        calling.do(calling.session.end)
    else:
        calling.client.leave()
        assert calling.commands == [NEUTRAL]
    calling.answer()
    assert not calling.calls


def test_a_service_timeout_is_an_error_and_its_late_response_is_dropped(slow):
    slow.client.send(ASKING)
    slow.run(slow.parameters.request_timeout + 0.01)
    assert answers(slow.client) == [sim.Error(0, ANY)]
    slow.client.send(ASKING)
    slow.answer()
    assert not slow.client.news()
    slow.answer()
    assert answers(slow.client) == [TOLD]


def test_after_a_service_timeout_queued_requests_move_nothing_except_zero(slow):
    slow.bridge.responses = {"set_entity_state": DONE}
    slow.client.send(steer(TURN, W), steer(TURN, W), steer(STANDING, W))
    slow.run(slow.parameters.request_timeout + 0.01)
    assert [each.message for each in answers(slow.client)] == [ANY, MAY_BE_STALE]
    slow.calls.pop(0)
    (stop,) = slow.calls
    twist = stop.tag.request.twist
    assert (twist.angular.x, twist.angular.y, twist.angular.z) == (0.0, 0.0, 0.0)
    slow.answer()
    slow.client.send(steer(TURN, W))
    slow.answer()
    assert answers(slow.client) == [sim.Ok()] * 2


def test_a_response_after_a_stall_is_accepted(slow):
    slow.client.send(ASKING)
    slow.stall(60.0)
    slow.do(slow.session.tick)
    slow.answer()
    assert answers(slow.client) == [TOLD]


def test_requests_ahead_of_an_answer_are_bounded(slow):
    slow.client.send(ASKING)
    slow.client.send(*[sim.Reassure()] * 150)
    slow.answer()
    assert len(answers(slow.client)) == 151
    slow.client.send(ASKING)
    reassure = sim.frame(sim.Reassure())
    for _ in range(2):
        assert not slow.client.is_closed
        slow.client.say(reassure * (MAX_AHEAD_BYTES // len(reassure) // 2 + 1))
    assert slow.client.is_closed


def test_a_client_that_disconnects_during_a_call_leaves_no_items(slow):
    slow.bridge.responses = {"stream_camera": {**DONE, "stream_id": 6}, "remove": DONE}
    slow.client.send(sim.StreamCamera(4, 1, BUOY))
    slow.client.leave()
    slow.answer()
    slow.answer()
    assert [name for name, _ in slow.bridge.asked] == ["stream_camera", "remove"]
    assert slow.bridge.asked[-1][1].id == 6


def test_items_in_the_bridge_s_simulator_end_with_their_client(world):
    world.bridge.responses = {
        "add_camera": {**DONE, "id": 4},
        "stream_camera": {**DONE, "stream_id": 6},
        "add_trigger": {**DONE, "id": 5},
        "remove": {"success": False, "message": "Not now."},
    }
    for request in (
        sim.AddCamera(VEHICLE, LEVEL, STANDING, 1.0),
        sim.StreamCamera(4, 1, BUOY),
        sim.AddTrigger(sim.SweepCollisionTrigger(0, 3)),
    ):
        assert isinstance(world.ask(request), sim.Added)
    world.do(world.session.reported, sim.CameraData(6, 0.0, 0.0, 0.0, 1.0))
    world.do(world.session.reported, sim.Triggered(5))
    assert [type(event) for event in world.client.news()] == [sim.CameraData, sim.Triggered]
    world.bridge.asked.clear()
    world.client.leave()
    removed = {(request.type, request.id) for _, request in world.bridge.asked}
    assert removed == {(ItemType.CAMERA_STREAM, 6), (ItemType.TRIGGER, 5)}


def test_a_camera_of_the_bridge_s_simulator_is_changed_only_there(world):
    world.bridge.responses = {"add_camera": {**DONE, "id": 4}, "set_camera": DONE}
    assert world.ask(sim.AddCamera(VEHICLE, LEVEL, STANDING, 1.0)) == sim.Added(ItemType.CAMERA, 4)
    for unknown in (4, 255):
        assert world.ask(sim.SetCamera(4, unknown, b"data")).code == 1
    change = sim.SetCamera(4, sim.CameraAttribute.ENABLED, False)
    assert world.ask(change) == sim.Ok()
    assert len(world.bridge.asked) == 2
    world.bridge.responses.clear()  # the bridge has ended
    assert "set_camera" in world.ask(change).message
    assert "stream_camera" in world.ask(sim.StreamCamera(4, 1, VEHICLE)).message


def test_camera_of_the_bridges_simulator_replaces_an_own_one_by_id():
    """Happens when the bridge has restarted."""
    world = ServedWorld(others=[ConfiguredEntity(BUOY, 0.15)])
    assert world.ask(sim.AddCamera(VEHICLE, LEVEL, STANDING, 1.0)) == sim.Added(ItemType.CAMERA, 0)
    assert world.ask(sim.StreamCamera(0, 1, BUOY)) == sim.Added(ItemType.CAMERA_STREAM, 0)
    world.move(entity=BUOY)
    world.move()
    assert [type(event) for event in world.client.news()] == [sim.CameraData]
    world.bridge.responses = {"add_camera": {**DONE, "id": 0}}
    assert world.ask(sim.AddCamera(VEHICLE, LEVEL, STANDING, 1.0)) == sim.Added(ItemType.CAMERA, 0)
    world.move()
    assert not world.client.news()


def test_spies_are_notified_of_the_bridge_s_added_and_removed_entities(world):
    world.ask(sim.Spy())
    for is_added in (True, False):
        world.do(world.session.reported, sim.Spied(is_added, ItemType.ENTITY, 9))
        assert world.client.news() == [sim.Spied(is_added, ItemType.ENTITY, 9)]
    assert [follow.name for follow in world.followed] == [None]


def test_the_simulator_s_end_of_a_run_is_sent_to_all_clients(world):
    world.bridge.responses = {"run": DONE, "pause": DONE}
    assert world.ask(sim.Pause()) == sim.Ok()
    assert world.ask(sim.Run(3)) == sim.Ok()
    assert world.is_running
    world.do(world.session.reported, sim.Completed())
    assert world.client.news() == [sim.Completed()]
    assert not world.is_running


def test_a_vehicle_without_its_bridge_is_not_steered(world):
    world.bridge.responses = {"set_entity_state": DONE}
    assert world.ask(steer(TURN, W)) == sim.Ok()
    world.bridge.responses = {}
    assert world.ask(steer(TURN, W)) == UNKNOWN


def test_after_a_fault_no_call_is_pending(slow):
    slow.client.send(ASKING)
    actions = slow.do(slow.session.lost)
    assert Close(slow.client.peer) in actions
    assert not slow.session.is_open
    slow.do(slow.session.opened)
    slow.answer()
    assert not slow.client.news()
    assert not any(isinstance(action, Call) for action in slow.actions[-1:])
