# SPDX-License-Identifier: Apache-2.0
"""ClientSession of simulator_bridge across connections, in isolation, with a fake clock."""

import math
from dataclasses import replace

import pytest
from session_talk import published
from simulator_talk import BUOY, COMMAND_TIMEOUT_S, EAST, FRONT, NORTH, SET, STOPPED, VEHICLE, SimulatorTalk
from simulator_world import STILL, STREAMED, UPRIGHT

from drone_bridge.session.session import Close, Publish, Send
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.session import procedures
from drone_bridge.simulator.session.client import CONNECTED, ENDED, NOT_CONNECTED, SUSPENDED
from drone_bridge.simulator.session.connected_client import LIST_PERIOD_S, MAX_CALLS
from drone_bridge.simulator.session.desired_items import DesiredEntityStream
from drone_bridge.simulator.session.events import (
    BodyToModelKnown,
    CameraPlaced,
    ClockTime,
    ConnectionStarted,
    DiagnosticValue,
    PublishedScene,
    SimulatorEvent,
    States,
)
from drone_bridge.simulator.session.exchange import STALE_REQUEST
from drone_bridge.simulator.session.heading import CONNECT_QUIET_S

NEUTRAL = [sim.SetEntity(VEHICLE, each, STILL[each]) for each in (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY)]
PERIOD_S = 0.02  # of velocities
TIMEOUT_S = 2.0  # of answers
QUARTER = math.sqrt(0.5)
TURNED = (QUARTER, 0.0, 0.0, QUARTER)
MARK = (VEHICLE, "drone_bridge.world")
BODY_TO_MODEL = (VEHICLE, "drone_bridge.btom")
ZEROS = [0.0, 0.0, 0.0, 0.0]
NO_VEHICLE = sim.Error(0, "No entity with given ID.")


@pytest.fixture
def talk():
    """Return a talk whose simulator is connected and has answered the first requests."""
    return connected()


def connected(**parameters):
    talk = SimulatorTalk(**parameters)
    talk.connect()
    return talk


# First requests.


def test_zero_is_sent_first_and_streams_have_separate_connections(talk):
    kinds = [type(each) for each in talk.asked["requests"][:10]]
    assert talk.asked["requests"][:2] == NEUTRAL
    assert kinds[2:] == [sim.GetConfig, sim.ListEntities, *[sim.GetExtended] * 2, *[sim.GetEntity] * 4]
    assert talk.of(sim.AddCamera) == [FRONT]
    assert talk.asked["streams"] == [
        sim.StreamEntity(VEHICLE, 1, STREAMED),
        sim.StreamEntity(BUOY, 1, STREAMED),
        sim.AddTrigger(sim.CollisionTrigger(0, 1, 0.5)),
        sim.Reassure(),
        sim.StreamCamera(0, 2, BUOY),
    ]
    assert (talk.session.state, talk.session.is_open, talk.session.is_proven) == ("connected", True, True)
    assert talk.noted("connections") == ["Connected to requests."]


def test_nothing_is_sent_before_all_connections_are_open():
    talk = SimulatorTalk()
    assert talk.session.connected("requests", talk.now_s) == []
    assert not talk.session.is_open


def test_a_simulator_that_answers_nothing_has_not_proved_useful():
    talk = SimulatorTalk()
    talk.is_silent = True
    talk.connect()
    assert not talk.session.is_proven


def test_a_simulator_without_a_vehicle_is_useful_too():
    talk = SimulatorTalk()
    talk.world.reset(entities={BUOY: dict(STILL)}, answers={sim.SetEntity: NO_VEHICLE})
    talk.connect()
    assert "ntity 0" in talk.noted("missing_vehicle")[0]
    assert "entity 0" in talk.noted("refused_items")[0]
    assert not talk.noted("refused_velocities")
    assert talk.outcome(talk.ask(procedures.run, 0, False, TIMEOUT_S)).is_success


# Published events.


def test_states_of_a_step_are_published_together_and_steps_separately(talk):
    wire, north = talk.wires["streams"], lambda number: (number, 0.0, 0.0)
    data = b""
    for number in (1.0, 2.0):
        for stream in (VEHICLE, BUOY):
            values = STILL | {Attribute.POSITION: north(number + 10 * stream)}
            data += wire.send(sim.EntityData(stream, STREAMED, tuple(values[each] for each in STREAMED)))
    done = talk.take(talk.session.receive(data, "streams", talk.now_s))
    told = [each for each in published(done) if isinstance(each, States | ClockTime)]
    assert [type(each) for each in told] == [ClockTime, States, ClockTime, States]
    positions = [[(entity, values[0]) for entity, values in each.of] for each in told[1::2]]
    assert positions == [[(0, north(1.0)), (1, north(11.0))], [(0, north(2.0)), (1, north(12.0))]]
    assert [each.nanoseconds for each in told[::2]] == [10_000_000, 20_000_000]
    assert [measured.position[1] for measured, _ in talk.reported] == [1.0, 2.0], "the vehicle's, in the same call"


def test_events_are_published_after_earlier_states(talk):
    data = talk.wires["streams"].send(sim.EntityData(VEHICLE, STREAMED, tuple(STILL[each] for each in STREAMED)))
    data += talk.wires["streams"].send(sim.Triggered(0))
    kinds = [type(each) for each in published(talk.take(talk.session.receive(data, "streams", talk.now_s)))]
    assert kinds == [ClockTime, States, SimulatorEvent]
    assert talk.published(SimulatorEvent)[-1] == SimulatorEvent(sim.Triggered(0), "near")


def test_stop_precedes_the_states_of_its_turn(talk):
    talk.step()
    talk.command(NORTH)
    talk.now_s += COMMAND_TIMEOUT_S + 0.01
    data = talk.wires["streams"].send(sim.EntityData(VEHICLE, STREAMED, tuple(STILL[each] for each in STREAMED)))
    done = talk.session.receive(data, "streams", talk.now_s)
    kinds = [type(each) for each in done if isinstance(each, Send | Publish)]
    assert kinds == [Send, Send, Publish, Publish]
    assert [type(each) for each in published(done)] == [ClockTime, States]
    talk.take(done)
    assert talk.velocities()[-1] == SET[STOPPED]


def test_a_camera_view_names_its_camera_and_target(talk):
    view = sim.CameraData(0, 0.25, -0.5, 0.125, 4.0)
    talk.say("streams", view)
    assert talk.published(SimulatorEvent)[-1] == SimulatorEvent(view, "buoy", (0, "front", BUOY))


def test_invalid_states_and_unknown_streams_are_counted_and_not_published(talk):
    for bad in ({Attribute.POSITION: (math.nan, 0.0, 0.0)}, {Attribute.ORIENTATION: (0.0,) * 4}):
        talk.step(bad)
    assert [sentence.split(":")[0] for sentence in talk.noted("bad_numbers")] == ["Entity 0"] * 2
    talk.step(stream=77)
    assert len(talk.noted("unknown_streams")) == 1
    talk.say("streams", sim.EntityData(VEHICLE, (0,), ((1.0, 2.0, 3.0),)))
    assert not talk.published(States)
    assert talk.session.is_open


# Added and removed entities.


def test_a_missing_entity_is_streamed_once_it_is_added():
    talk = SimulatorTalk()
    del talk.world.entities[BUOY]
    talk.connect()
    asked = len(talk.of(sim.StreamEntity, "streams"))
    talk.world.entities[BUOY] = dict(STILL)
    talk.run(1.1)
    assert [each.id for each in talk.of(sim.StreamEntity, "streams")[asked:]] == [BUOY]


def test_an_entity_removed_here_is_announced_once_with_its_name(talk):
    number = talk.outcome(talk.ask(procedures.spawn, ball(), "float", True, 1)).result
    talk.run(1.1)
    assert talk.outcome(talk.ask(procedures.remove, sim.Remove(ItemType.ENTITY, number))).is_success
    assert number not in talk.published(PublishedScene)[-1].entities
    del talk.world.entities[number]
    talk.run(1.1)
    gone = SimulatorEvent(sim.Spied(False, ItemType.ENTITY, number), "float")
    assert [each for each in talk.published(SimulatorEvent) if not each.message.is_added] == [gone]


def test_a_slow_simulator_is_not_polled_before_it_has_answered(talk):
    talk.world.answers[sim.ListEntities] = lambda request: None
    talk.run(1.5)
    lists = len(talk.of(sim.ListEntities))
    talk.run(1.0)
    assert len(talk.of(sim.ListEntities)) == lists


def ball(**more):
    return sim.AddEntity(1.0, 0.2, (0.1,) * 3, UPRIGHT, (0.0,) * 3, UPRIGHT, True, **more)


# Steering.


def test_a_command_is_sent_at_once_and_then_the_newest_at_the_rate(talk):
    talk.command(NORTH)
    assert talk.velocities()[1:] == [SET[NORTH]]
    talk.command(EAST)
    assert len(talk.velocities()) == 2
    talk.run(PERIOD_S)
    assert talk.velocities()[2:] == [SET[EAST]]


def test_without_a_command_the_vehicle_gets_zero_and_is_then_released(talk):
    talk.command(NORTH)
    talk.run(COMMAND_TIMEOUT_S + 2 * PERIOD_S)
    assert set(talk.velocities()[-1:]) == {SET[STOPPED]}
    talk.run(5.0)
    count = len(talk.velocities())
    assert talk.velocities()[-200:] == [SET[STOPPED]] * 200
    talk.run(5.0)
    assert len(talk.velocities()) == count


def test_a_vehicle_without_commands_is_not_steered(talk):
    talk.run(5.0)
    assert talk.velocities() == [SET[STOPPED]]


def test_a_stop_is_immediate_and_other_velocities_wait_for_answers(talk):
    talk.command(NORTH)
    talk.run(PERIOD_S)
    talk.is_silent = True
    talk.command(NORTH)
    talk.run(PERIOD_S)
    count = len(talk.velocities())
    talk.command(EAST)
    talk.run(2 * PERIOD_S)
    assert len(talk.velocities()) == count
    assert talk.noted("late_velocities")
    talk.command(STOPPED)
    talk.run(2 * PERIOD_S)
    assert talk.velocities()[count:] == [SET[STOPPED]]
    talk.is_silent = False
    talk.reconnect()  # nothing is awaited from before
    talk.step()
    talk.command(EAST)
    talk.run(PERIOD_S)
    assert talk.velocities()[-1] == SET[EAST]


def test_velocities_are_sent_while_an_answer_is_pending(talk):
    talk.is_silent = True
    pending = talk.ask(procedures.spawn, ball(), "", True, 1)
    talk.command(NORTH)
    assert talk.velocities()[-1] == SET[NORTH]
    assert talk.outcome(pending) is None


def test_velocities_use_the_current_attitude(talk):
    talk.step({Attribute.ORIENTATION: TURNED})
    talk.command(NORTH)
    assert talk.velocities()[-1] == SET[EAST]


def test_a_refused_velocity_is_counted(talk):
    talk.world.answers[sim.SetEntity] = NO_VEHICLE
    talk.command(NORTH)
    assert "entity 0 (code 0)" in talk.noted("refused_velocities")[0]


def test_the_removal_of_the_vehicle_is_reported_once(talk):
    talk.step()
    vehicle = talk.world.entities.pop(VEHICLE)
    talk.world.answers[sim.SetEntity] = NO_VEHICLE
    for _ in range(30):
        talk.command(NORTH)
        talk.run(0.1)
    told = [*talk.noted("refused_velocities"), *talk.noted("missing_vehicle")]
    assert len(set(told)) == 2  # that it is refused, and why
    assert "removed" in talk.noted("missing_vehicle")[0]
    talk.world.answers.clear()
    talk.world.entities[VEHICLE] = vehicle
    talk.run(1.1)
    talk.step(stream=2)
    talk.command(EAST)
    talk.run(PERIOD_S)
    assert talk.velocities()[-1] == SET[EAST]


def test_on_hold_zero_is_repeated(talk):
    talk.command(NORTH)
    talk.arbiter.is_held = True
    talk.take(talk.session.commanded(talk.now_s))
    talk.run(10.0)
    assert talk.velocities()[-100:] == [SET[STOPPED]] * 100
    count = len(talk.velocities())
    talk.run(1.0)
    assert len(talk.velocities()) > count


def test_a_vehicle_with_unknown_attitude_gets_only_zero():
    talk = connected(body_to_model=ZEROS)
    talk.step()  # it runs
    talk.command(NORTH)
    assert talk.velocities() == [SET[STOPPED]]
    assert talk.noted("unsteered_commands")[0]
    talk.command(STOPPED)
    talk.run(2 * PERIOD_S)
    assert set(talk.velocities()) == {SET[STOPPED]}
    assert len(talk.velocities()) > 1


def test_the_end_stops_a_steered_vehicle(talk):
    talk.command(NORTH)
    talk.arbiter.command = None
    actions = talk.take(talk.session.end(talk.now_s))
    assert talk.asked["requests"][-2:] == NEUTRAL
    ends = [each for each in actions if isinstance(each, Send | Close)]
    assert [type(each) for each in ends] == [Send, Send, Close, Close]
    assert talk.session.is_over


def test_the_end_sends_nothing_to_a_released_vehicle(talk):
    actions = talk.take(talk.session.end(talk.now_s))
    assert not [each for each in actions if isinstance(each, Send)]
    assert sorted(talk.closed) == ["requests", "streams"]


def test_each_connection_starts_with_zero_and_without_earlier_commands(talk):
    talk.command(NORTH)
    talk.reconnect()
    assert talk.asked["requests"][:2] == NEUTRAL
    talk.run(1.0)
    assert set(talk.velocities()) == {SET[STOPPED]}


# Stalls.


def test_after_a_stall_zero_is_not_rate_limited():
    talk = connected(rate=0.5)
    talk.run(3.0)
    talk.command(NORTH)
    talk.stall(0.6)
    assert talk.velocities()[-2:] == [SET[NORTH], SET[STOPPED]]


def test_after_a_stall_a_current_command_is_sent_again(talk):
    talk.command(NORTH)
    talk.arbiter.command, talk.arbiter.arrived_s = EAST, talk.now_s + 0.4
    talk.stall(0.5)
    assert talk.velocities()[-1] == SET[EAST]


def test_a_stall_of_this_process_does_not_count_as_silence(talk):
    talk.is_silent = True
    asked = talk.ask(procedures.ask, sim.Reassure())
    talk.stall(10.0)
    talk.run(TIMEOUT_S - 0.1)
    assert not talk.outcome(asked)
    talk.run(0.2)
    assert not talk.outcome(asked).is_success


def test_requests_from_before_a_stall_are_refused(talk):
    talk.stall(1.0)
    refused = talk.outcome(talk.ask(procedures.run, 0, False, TIMEOUT_S, asked_s=talk.now_s - 0.5))
    assert (refused.is_success, refused.result) == (False, -1)
    assert "call again" in refused.sentence
    assert not talk.of(sim.Run)


def test_procedures_from_before_a_stall_do_not_move_the_vehicle(talk):
    talk.is_silent = True

    def forward(orientation):
        return [sim.SetEntity(VEHICLE, Attribute.VELOCITY, (1.0, 0.0, 0.0))]

    begun, waiting = (talk.ask(procedures.set_state, VEHICLE, forward, True) for _ in range(2))
    other = talk.ask(procedures.ask, sim.SetEntity(BUOY, Attribute.POSITION, (1.0, 0.0, 0.0)))
    talk.stall(1.0)
    talk.is_silent = False
    talk.say("requests", sim.EntityGot(Attribute.ORIENTATION, UPRIGHT))
    assert [talk.outcome(each).sentence for each in (begun, waiting)] == [STALE_REQUEST] * 2
    assert talk.outcome(other).is_success
    assert set(talk.velocities()) == {SET[STOPPED]}


def test_a_stall_of_this_process_does_not_count_as_a_pause():
    talk = connected(body_to_model=ZEROS)
    talk.step()
    talk.stall(5.0)
    assert not turns(talk)


# Silence and invalid data.


def test_a_suspended_simulator_gets_zero_once_and_stays_connected(talk):
    talk.command(NORTH)
    talk.run(PERIOD_S)
    talk.is_silent = True
    before = len(talk.asked["requests"])
    for _ in range(100):
        talk.command(EAST)
        talk.run(0.1)
    assert talk.velocities()[-2:] == [SET[EAST], SET[STOPPED]]
    sent = talk.asked["requests"][before:]
    assert [type(each) for each in sent] == [*[sim.SetEntity] * 4, sim.ListEntities]
    assert talk.session.state == SUSPENDED
    assert talk.session.silent_s(talk.now_s) > 9.0
    assert len(talk.noted("unanswered_requests")) == 1
    talk.go_on()
    talk.command(NORTH)
    talk.run(PERIOD_S)
    assert talk.session.state == CONNECTED
    assert talk.velocities()[-1] == SET[NORTH]
    assert not talk.closed


def test_a_suspended_simulator_that_is_not_steered_gets_nothing(talk):
    talk.is_silent = True
    talk.run(LIST_PERIOD_S)
    before = len(talk.asked["requests"])
    talk.run(10.0)
    assert len(talk.asked["requests"]) == before


def test_a_simulator_suspended_during_the_connection_stays_connected():
    talk = SimulatorTalk()
    talk.is_silent = True
    talk.connect()
    asked = len(talk.asked["requests"])
    talk.run(30.0)
    assert not talk.closed
    assert len(talk.asked["requests"]) == asked
    assert (talk.session.is_open, talk.session.state) == (True, SUSPENDED)
    talk.go_on()
    assert talk.session.state == CONNECTED
    assert talk.noted("") == ["The simulator responds again."]


def test_calls_to_a_suspended_simulator_time_out_without_being_sent(talk):
    talk.is_silent = True
    asked, waiting = talk.ask(procedures.ask, sim.Reassure()), talk.ask(procedures.ask, sim.GetConfig())
    talk.run(TIMEOUT_S - 0.1)
    assert not talk.outcome(asked)
    talk.run(0.1)
    late = talk.ask(procedures.ask, sim.GetConfig())
    sentences = [talk.outcome(each).sentence for each in (asked, waiting, late)]
    assert all("has not answered REASSURE" in each for each in sentences)
    assert sentences[0].endswith("It may still execute the request.")
    assert all(each.endswith("The request was not sent.") for each in sentences[1:])
    assert talk.of(sim.GetConfig)[1:] == []
    talk.go_on()
    assert talk.outcome(talk.ask(procedures.ask, sim.GetConfig())).is_success


def test_an_idle_simulator_is_noticed_to_be_silent(talk):
    talk.run(10.0)
    assert talk.session.silent_s(talk.now_s) <= LIST_PERIOD_S


def test_successive_answers_are_not_overdue(talk):
    talk.world.answers[sim.GetEntity] = lambda request: None
    asked = talk.ask(procedures.get_state, BUOY)
    for attribute in (*STREAMED, Attribute.CORPOREAL):
        assert not talk.outcome(asked)
        talk.run(TIMEOUT_S - 0.1)
        talk.say("requests", sim.EntityGot(attribute, STILL[attribute]))
    assert talk.outcome(asked).is_success


def test_messages_before_invalid_data_are_published_and_none_is_lost(talk):
    talk.command(NORTH)
    data = talk.wires["streams"].send(sim.EntityData(VEHICLE, STREAMED, tuple(STILL[each] for each in STREAMED)))
    talk.take(talk.session.receive(data + b"\x0d\0\0\0\0", "streams", talk.now_s))
    assert talk.published(States)
    (sentence,) = talk.noted("rejected_input")
    assert "type 13" in sentence
    assert not talk.noted("lost_connections")
    assert talk.asked["requests"][-2:] == NEUTRAL


def test_a_disconnect_names_the_request_that_may_have_caused_it(talk):
    talk.world.answers[sim.AddEntity] = lambda request: None
    asked = talk.ask(procedures.spawn, ball(), "", True, 1)
    talk.disconnect("requests")
    assert "EADD" in talk.outcome(asked).sentence
    assert talk.closed == ["streams"]


def test_the_end_of_the_streams_ends_the_requests(talk):
    talk.disconnect("streams")
    assert talk.noted("lost_connections") == ["streams has closed the connection."]
    assert talk.closed == ["requests"]


def test_a_fault_stops_the_vehicle_and_answers_callers(talk):
    talk.command(NORTH)
    talk.world.answers[sim.Reassure] = lambda request: None
    asked = talk.ask(procedures.ask, sim.Reassure())
    talk.take(talk.session.lost(talk.now_s))
    assert talk.asked["requests"][-2:] == NEUTRAL
    assert talk.outcome(asked).sentence == ENDED
    assert talk.session.lost(talk.now_s) == []


def test_calls_without_a_connection_are_refused():
    talk = SimulatorTalk()
    assert talk.outcome(talk.ask(procedures.pause)).sentence == NOT_CONNECTED


def test_pending_calls_are_bounded(talk):
    talk.world.answers[sim.Reassure] = lambda request: None
    asked = [talk.ask(procedures.ask, sim.Reassure()) for _ in range(MAX_CALLS + 1)]
    assert str(MAX_CALLS) in talk.outcome(asked[-1]).sentence
    assert not any(map(talk.outcome, asked[:-1]))
    talk.say("requests", sim.Ok())
    assert not talk.outcome(talk.ask(procedures.ask, sim.Reassure()))


def test_an_item_whose_request_timed_out_is_not_restored(talk):
    talk.world.answers[sim.StreamEntity] = lambda request: None
    talk.ask(procedures.stream_entity, VEHICLE + 7, "gate", 1)
    assert 7 in talk.published(PublishedScene)[-1].entities
    talk.run(TIMEOUT_S)
    assert 7 not in talk.published(PublishedScene)[-1].entities
    talk.world.answers.clear()
    talk.reconnect()
    assert [each.id for each in talk.of(sim.StreamEntity, "streams")] == [VEHICLE, BUOY]


def test_a_camera_stream_without_a_target_starts_with_it(talk):
    talk.world.answers[sim.StreamCamera] = lambda request: (
        talk.world.usual_answer(request) if request.target in talk.world.entities else sim.Error(1, "No entity.")
    )
    talk.ask(procedures.add_camera, "down", FRONT, (9,), 1)
    assert "entity 9 in camera down" in talk.noted("refused_items")[0]
    talk.asked["streams"].clear()
    talk.world.entities[9] = dict(STILL)
    talk.run(1.1)
    assert [each.target for each in talk.of(sim.StreamCamera, "streams")] == [9]


def test_what_was_asked_for_before_an_entity_was_spawned_is_restored(talk):
    talk.world.answers[sim.StreamCamera] = sim.Error(1, "No entity.")
    talk.ask(procedures.add_camera, "down", FRONT, (2,), 1)
    del talk.world.answers[sim.StreamCamera]
    talk.asked["streams"].clear()
    assert talk.outcome(talk.ask(procedures.spawn, ball(), "", False, 1)).result == 2
    assert talk.of(sim.StreamCamera, "streams") == [sim.StreamCamera(1, 1, 2)]


# Simulations.


def test_the_same_simulation_is_recognized_after_a_reconnect(talk):
    assert talk.published(ConnectionStarted) == [ConnectionStarted(True)]
    talk.outcome(talk.ask(procedures.add, DesiredEntityStream(BUOY, 7)))
    talk.reconnect()
    assert talk.published(ConnectionStarted) == [ConnectionStarted(True), ConnectionStarted(False)]
    assert talk.of(sim.AddCamera) == []
    assert [each.period for each in talk.of(sim.StreamEntity, "streams")] == [1, 1, 7]
    assert talk.of(sim.StreamCamera, "streams") == [sim.StreamCamera(0, 2, BUOY)]


def test_a_new_simulation_has_only_configured_items(talk):
    number = talk.outcome(talk.ask(procedures.spawn, ball(), "ball", True, 1)).result
    talk.ask(procedures.add_camera, "down", FRONT, (0,), 1)
    assert talk.published(PublishedScene)[-1].entities[number] == "ball"
    talk.world.reset(entities={VEHICLE: dict(STILL), BUOY: dict(STILL)})
    talk.reconnect()
    assert talk.published(ConnectionStarted)[-1] == ConnectionStarted(True)
    assert talk.published(PublishedScene)[-1] == PublishedScene(
        {VEHICLE: "vehicle", BUOY: "buoy"}, frozenset({"front"})
    )
    assert talk.of(sim.AddCamera) == [FRONT]
    assert [each.id for each in talk.of(sim.StreamEntity, "streams")] == [VEHICLE, BUOY]
    assert talk.outcome(talk.ask(procedures.list_entities)).result == ((0, 1), ["vehicle", "buoy"])
    assert talk.outcome(talk.ask(procedures.add_camera, "down", FRONT, (), 1)).is_success


def test_a_world_that_another_bridge_has_marked_keeps_its_mark():
    talk = SimulatorTalk()
    mark = talk.world.extended[MARK] = bytes(range(16))
    talk.connect()
    assert len(talk.of(sim.AddCamera)) == 1
    talk.reconnect()
    assert not talk.of(sim.AddCamera)
    assert talk.world.extended[MARK] == mark
    # A new world has none of our cameras, even if another bridge marked it first.
    talk.world.reset(extended={MARK: b"x" * 16})
    talk.reconnect()
    assert len(talk.of(sim.AddCamera)) == 1
    assert talk.world.extended[MARK] == b"x" * 16


def test_refused_items_are_logged_and_requested_on_the_next_connection(talk):
    talk.world.answers[sim.AddTrigger] = sim.Error(2, "No entity.")
    talk.reconnect()
    assert all("trigger near" in sentence for sentence in talk.noted("refused_items"))
    talk.world.answers.clear()
    talk.reconnect()
    talk.say("streams", sim.Triggered(1))
    assert talk.published(SimulatorEvent)[-1].name == "near"


# Heading.


def learning(**parameters):
    talk = SimulatorTalk(body_to_model=ZEROS, **parameters)
    talk.world.entities[VEHICLE][Attribute.ORIENTATION] = talk.world.btom = TURNED
    talk.connect()
    return talk


#: Time from the connection until it is learned, with some jitter.
LEARNED_S = CONNECT_QUIET_S + 0.2


def turns(talk):
    """Return the number of times that the bridge has turned the vehicle."""
    return [each for each in talk.of(sim.SetEntity) if each.attribute == Attribute.ORIENTATION]


def test_the_rotation_of_principal_axes_is_learned_while_paused_and_stored():
    talk = learning()
    assert talk.published(BodyToModelKnown)[-1].rotation is None
    talk.command(NORTH)
    assert talk.noted("unsteered_commands") == [""], "it takes a moment"
    talk.run(LEARNED_S)
    assert talk.published(BodyToModelKnown)[-1].rotation == pytest.approx(TURNED)
    assert talk.world.entities[VEHICLE][Attribute.ORIENTATION] == pytest.approx(TURNED)  # as it was
    talk.reconnect()
    assert talk.published(BodyToModelKnown)[-1].rotation == pytest.approx(TURNED)
    assert not turns(talk)
    talk.step({Attribute.ORIENTATION: TURNED}, stream=2)  # the third one of entities
    assert talk.published(States)[-1].of[0][1][3] == pytest.approx(UPRIGHT)


@pytest.mark.parametrize("first_s", [0.0, 0.5, CONNECT_QUIET_S - 0.1])
@pytest.mark.parametrize("late_s", [0.2, 1.0, 10.0])
def test_late_steps_do_not_count_as_a_pause(first_s, late_s):
    talk = learning()
    talk.run(first_s)
    for _ in range(20):
        talk.step({Attribute.ORIENTATION: TURNED})
        talk.run(late_s)
    assert not turns(talk)
    assert len(talk.noted("unknown_heading")) == 1
    assert "running" in talk.noted("unknown_heading")[0]


def test_a_simulation_with_long_steps_does_not_count_as_paused():
    talk = SimulatorTalk(body_to_model=ZEROS)
    talk.world.answers[sim.GetConfig] = sim.Configured(0.25, 1.0, False, False)
    talk.connect()
    talk.run(11.9)  # three steps take 12 s
    assert not turns(talk)
    talk.run(0.3)
    assert turns(talk)


@pytest.mark.parametrize("answer", [sim.Ok(), sim.Error(0, "Simulator is not running.")])
def test_rotation_is_measured_in_a_pause_requested_before_the_next_run(answer):
    talk = learning()
    talk.step({Attribute.ORIENTATION: TURNED})
    talk.run(10.0)
    talk.world.answers[sim.Pause] = answer
    talk.ask(procedures.pause)
    talk.step({Attribute.ORIENTATION: TURNED})  # on its way
    running = talk.ask(procedures.run, 0, False, TIMEOUT_S)
    talk.run(0.4)
    assert BODY_TO_MODEL in talk.world.extended
    assert talk.outcome(running).is_success
    assert talk.asked["requests"].index(sim.Run(0)) > talk.asked["requests"].index(turns(talk)[-1])


@pytest.mark.parametrize(
    ("answer", "steps"), [(sim.Ok(), 30), (sim.Error(1, "Not now."), 0)], ids=["ended by others", "refused"]
)
def test_a_pause_that_is_none_does_not_count(answer, steps):
    talk = learning()
    talk.step({Attribute.ORIENTATION: TURNED})
    talk.world.answers[sim.Pause] = answer
    talk.ask(procedures.pause)
    for _ in range(steps):
        talk.step({Attribute.ORIENTATION: TURNED})
        talk.run(0.01)
    talk.run(10.0)
    assert not turns(talk)


def come_back(talk, **changes):
    """Connect to another running simulator without stored rotation. Return the rotation that the bridge uses."""
    vehicle = talk.world.entities[VEHICLE] | changes.pop("vehicle", {})
    talk.world.reset(entities={VEHICLE: vehicle, BUOY: dict(STILL)}, btom=TURNED, **changes)
    talk.reconnect()
    return talk.published(BodyToModelKnown)[-1].rotation


def test_a_known_rotation_is_kept_if_the_vehicle_has_not_moved():
    talk = learning()
    talk.run(LEARNED_S)
    moving = {Attribute.ORIENTATION: TURNED, Attribute.VELOCITY: (1.0, 0.0, 0.0)}
    talk.step(moving, stream=2)
    talk.run(1.0)
    assert come_back(talk, vehicle=moving | {Attribute.POSITION: (1.0, 0.0, 0.0)}) == pytest.approx(TURNED)
    assert BODY_TO_MODEL in talk.world.extended
    talk.command(NORTH)
    assert talk.velocities()[-1] == SET[NORTH]
    assert not turns(talk)


@pytest.mark.parametrize(
    "moved", [{Attribute.POSITION: (20.0, 0.0, 0.0)}, {Attribute.ORIENTATION: (0.0, 1.0, 0.0, 0.0)}]
)
def test_a_known_rotation_is_dropped_if_the_vehicle_has_moved(moved):
    talk = learning()
    talk.run(LEARNED_S)
    talk.step({Attribute.ORIENTATION: TURNED}, stream=2)
    assert come_back(talk, vehicle=moved) is None
    talk.command(NORTH)
    assert talk.velocities()[-1] == SET[STOPPED], "it is not steered by the rotation of another place"


def test_a_known_rotation_is_kept_if_a_restart_has_put_the_vehicle_back():
    """Others have unpaused the simulator at once, so that it can't be learned."""
    talk = learning()
    start = dict(talk.world.entities[VEHICLE])
    talk.run(LEARNED_S)
    talk.step({Attribute.POSITION: (200.0, 0.0, 0.0), Attribute.ORIENTATION: (0.0, 1.0, 0.0, 0.0)})
    talk.run(600.0)
    falls = {Attribute.POSITION: (0.0, 0.0, -0.5), Attribute.VELOCITY: (0.0, 0.0, -1.0)}
    assert come_back(talk, vehicle=start | falls) == pytest.approx(TURNED)
    talk.command(NORTH)
    assert talk.velocities()[-1] == SET[NORTH]
    assert not turns(talk)


def test_a_known_rotation_is_dropped_if_the_vehicle_is_only_seen_elsewhere():
    talk = learning()
    talk.run(LEARNED_S)
    talk.step({Attribute.POSITION: (200.0, 0.0, 0.0)})
    talk.run(600.0)
    assert come_back(talk, vehicle={Attribute.POSITION: (100.0, 0.0, 0.0)}) is None
    talk.ask(procedures.pause)
    talk.run(LEARNED_S)
    talk.step({Attribute.POSITION: (200.0, 0.0, 0.0)})
    assert come_back(talk, vehicle={Attribute.POSITION: (0.0, 0.0, 0.0)}) is None, "the first place of an earlier one"


def test_learning_is_retried_if_others_turn_the_vehicle():
    talk = learning()
    turned = iter([TURNED, UPRIGHT, UPRIGHT])
    talk.world.answers[sim.GetEntity] = lambda request: sim.EntityGot(request.attribute, next(turned))
    talk.run(LEARNED_S)
    assert "turned" in talk.noted("unknown_heading")[0]
    talk.world.answers.clear()
    talk.run(4.0)
    assert BODY_TO_MODEL not in talk.world.extended
    talk.run(2.0)
    assert BODY_TO_MODEL in talk.world.extended


def test_a_vehicle_in_a_running_simulation_is_not_turned():
    talk = learning()
    talk.world.answers[sim.GetEntity] = lambda request: None
    talk.run(LEARNED_S)
    talk.step({Attribute.ORIENTATION: TURNED})
    talk.world.answers.clear()
    talk.say("requests", sim.EntityGot(Attribute.ORIENTATION, TURNED))
    talk.run(10.0)
    assert not turns(talk)


def test_simulation_that_the_bridge_unpauses_runs_with_known_heading():
    talk = learning(run_on_connect=True)
    assert not talk.of(sim.Run)
    talk.run(LEARNED_S)
    assert talk.of(sim.Run) == [sim.Run(0)]
    assert BODY_TO_MODEL in talk.world.extended


# Awaited runs.


@pytest.mark.parametrize("order", ["completed first", "answer first"])
def test_an_awaited_run_ends_in_any_order_of_messages(talk, order):
    talk.world.answers[sim.Run] = lambda request: None
    asked = talk.ask(procedures.run, 1, True, TIMEOUT_S)
    said = [sim.Completed(), sim.Ok()] if order == "completed first" else [sim.Ok(), sim.Completed()]
    assert not talk.outcome(asked)
    talk.say("streams", sim.Completed())  # it arrives on every connection, and counts once
    assert not talk.outcome(asked)
    talk.say("requests", *said)
    assert talk.outcome(asked).is_success
    assert [each.message for each in talk.published(SimulatorEvent)] == [sim.Completed()]


def test_an_awaited_run_times_out_without_steps_and_lets_others_pass(talk):
    asked = talk.ask(procedures.run, 1000, True, TIMEOUT_S)
    assert talk.outcome(talk.ask(procedures.ask, sim.Reassure())).is_success
    talk.run(TIMEOUT_S - 0.1)
    talk.step()
    talk.run(TIMEOUT_S - 0.1)
    talk.stall(5.0)  # without visible steps
    talk.run(TIMEOUT_S - 0.1)
    assert not talk.outcome(asked)
    talk.run(0.2)
    assert "no step" in talk.outcome(asked).sentence


def test_an_awaited_run_ends_with_a_pause_requested_here(talk):
    asked = [talk.ask(procedures.run, 1000, True, TIMEOUT_S) for _ in range(2)]
    assert talk.outcome(talk.ask(procedures.pause)).is_success
    sentences = [talk.outcome(each).sentence for each in asked]
    assert sentences == ["The simulation was paused before all steps were done."] * 2


def test_an_awaited_run_ends_with_the_connection(talk):
    asked = talk.ask(procedures.run, 1000, True, TIMEOUT_S)
    talk.disconnect()
    assert talk.outcome(asked).sentence == "requests has closed the connection."


# Cameras.


def of_cameras(talk):
    """Return the requests about streams of cameras."""
    removed = [each for each in talk.asked["streams"] if isinstance(each, sim.StreamCamera | sim.Remove)]
    return [("remove" if isinstance(each, sim.Remove) else "stream", each.id) for each in removed]


def test_adding_a_camera_recreates_the_streams_of_the_others(talk):
    assert talk.outcome(talk.ask(procedures.add_camera, "down", FRONT, (BUOY,), 5)).result == 1
    assert of_cameras(talk) == [("stream", 0), ("remove", 0), ("stream", 0), ("stream", 1)]
    talk.say("streams", sim.CameraData(2, 0.0, 0.0, 0.0, 1.0))
    assert talk.published(SimulatorEvent)[-1].camera == (1, "down", BUOY)


def test_a_camera_restored_with_its_entity_recreates_other_streams(talk):
    talk.world.entities[9] = dict(STILL)
    talk.run(1.1)
    there = talk.outcome(talk.ask(procedures.add_camera, "there", replace(FRONT, entity=BUOY), (9,), 1)).result
    vehicle = talk.world.entities.pop(VEHICLE)
    talk.run(1.1)
    before = len(of_cameras(talk))
    talk.world.entities[VEHICLE] = vehicle
    talk.run(1.1)
    assert len(talk.of(sim.AddCamera)) == 3
    assert ("stream", there) in of_cameras(talk)[before:]


@pytest.mark.parametrize("who", ["here", "by others"])
def test_removing_an_entity_recreates_camera_streams_once(who):
    talk = SimulatorTalk()
    talk.world.entities[9] = dict(STILL)
    talk.connect()
    if who == "here":
        talk.ask(procedures.remove, sim.Remove(ItemType.ENTITY, 9))
    del talk.world.entities[9]
    talk.run(3.0)
    assert of_cameras(talk) == [("stream", 0), ("remove", 0), ("stream", 0)]


def test_streams_of_a_removed_camera_are_not_recreated(talk):
    added = talk.outcome(talk.ask(procedures.add_camera, "down", FRONT, (BUOY,), 1)).result
    talk.ask(procedures.remove, sim.Remove(ItemType.CAMERA, added))
    assert talk.published(PublishedScene)[-1].cameras == {"front"}
    assert of_cameras(talk)[-2:] == [("remove", 1), ("stream", 0)]


def test_frames_of_entities_and_cameras_are_unique(talk):
    again = talk.outcome(talk.ask(procedures.add_camera, "Front", FRONT, (), 1))
    assert "'front'" in again.sentence
    number = talk.outcome(talk.ask(procedures.spawn, ball(), "Front", False, 1)).result
    assert dict(zip(*talk.outcome(talk.ask(procedures.list_entities)).result, strict=True))[number] == "front_2"
    for _ in range(2):
        talk.ask(procedures.add_camera, "", FRONT, (), 1)
    names = [item.name for item in talk.simulation.items.cameras()]
    assert names == ["front", "camera_0", "camera_1"]


def test_only_own_cameras_are_changed(talk):
    change = sim.SetCamera(7, sim.CameraAttribute.FOCAL_LENGTH, 2.0)
    refused = talk.outcome(talk.ask(procedures.set_camera, 7, [change]))
    assert "Camera 7" in refused.sentence
    assert not talk.of(sim.SetCamera)


@pytest.mark.parametrize("is_cuauv_server", [True, False])
def test_a_camera_is_set_in_the_principal_axes_of_a_cuauv_server(is_cuauv_server):
    talk = SimulatorTalk(body_to_model=list(TURNED))
    talk.world.is_cuauv_server = is_cuauv_server
    talk.connect()
    change = sim.SetCamera(0, sim.CameraAttribute.POSITION, (1.0, 0.0, 0.0))
    assert talk.outcome(talk.ask(procedures.set_camera, 0, [change])).is_success
    (sent,) = talk.of(sim.SetCamera)
    assert sent.value == pytest.approx((0.0, -1.0, 0.0) if is_cuauv_server else (1.0, 0.0, 0.0), abs=1e-12)
    talk.world.reset(entities=talk.world.entities)
    ours = talk.simulation.items.cameras()[0]
    assert ours.request.position == (1.0, 0.0, 0.0)
    assert talk.published(CameraPlaced)[-1] == CameraPlaced("front", ours.request)
    talk.reconnect()  # to another simulation, with the configured state
    assert talk.of(sim.AddCamera) == [FRONT]
    assert talk.published(CameraPlaced)[-1] == CameraPlaced("front", FRONT)


# Several requests of one call.


def test_a_spawned_entity_with_a_used_name_is_streamed(talk):
    spawned = talk.outcome(talk.ask(procedures.spawn, ball(), "Buoy", True, 3))
    assert talk.published(PublishedScene)[-1].entities == {VEHICLE: "vehicle", BUOY: "buoy", spawned.result: "buoy_2"}
    assert talk.asked["streams"][-1] == sim.StreamEntity(spawned.result, 3, STREAMED)


def test_an_added_entity_without_a_stream_is_a_success_with_a_warning(talk):
    talk.world.answers[sim.StreamEntity] = sim.Error(1)
    spawned = talk.outcome(talk.ask(procedures.spawn, ball(), "", True, 1))
    assert (spawned.is_success, spawned.result) == (True, 2)
    assert "not published" in spawned.sentence


def test_a_velocity_in_an_entity_s_own_frame_uses_its_orientation(talk):
    talk.world.entities[BUOY][Attribute.ORIENTATION] = TURNED
    taken = []
    talk.ask(procedures.set_state, BUOY, lambda q: taken.append(q) or [sim.SetEntity(BUOY, 1, (1.0, 0.0, 0.0))], True)
    assert taken == [pytest.approx(TURNED)]
    nothing = talk.outcome(talk.ask(procedures.set_state, BUOY, lambda q: [], False))
    assert nothing.sentence


@pytest.mark.parametrize(("is_cuauv_server", "number"), [(True, 1), (False, 0)])
def test_the_id_of_an_object_is_that_for_its_removal(talk, is_cuauv_server, number):
    talk.world.is_cuauv_server = is_cuauv_server
    assert talk.outcome(talk.ask(procedures.add_object, sim.AddObject("turbulence", b"\0"))).result == number


@pytest.mark.parametrize(
    "request_",
    [
        sim.SetExtended(1, "", b"a note"),
        sim.SetExtended(1, "note", b""),
        sim.GetExtended(1, ""),
        sim.SetExtended(1, "k", bytes(1020)),
        ball(attributes=(sim.ExtendedAttribute("note", b""),)),
    ],
)
def test_requests_that_disconnect_real_simulators_are_refused(talk, request_):
    refused = talk.outcome(talk.ask(procedures.ask, request_))
    assert refused.sentence.startswith("The CUAUV server ")
    assert request_ not in talk.asked["requests"]
    talk.world.is_cuauv_server = False
    talk.reconnect()
    talk.ask(procedures.ask, request_)
    assert talk.asked["requests"][-1] == request_


def test_unencodable_requests_are_refused(talk):
    refused = talk.outcome(talk.ask(procedures.ask, sim.SetExtended(1, "k" * 256, b"")))
    assert "key of SetExtended has 256 bytes, and 255 " in refused.sentence
    talk.world.is_cuauv_server = False
    refused = talk.outcome(talk.ask(procedures.ask, sim.SetExtended(1, "k", bytes(65527))))  # too long for steering
    assert "65537 bytes" in refused.sentence
    assert talk.outcome(talk.ask(procedures.ask, sim.Reassure())).is_success


def test_diagnostics_have_the_configuration(talk):
    facts = {each.name: each.text for each in talk.published(DiagnosticValue)}
    assert facts == {"configuration": "100 steps per second, speed 1"}
