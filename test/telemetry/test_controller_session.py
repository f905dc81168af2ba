# SPDX-License-Identifier: Apache-2.0
"""TelemetryControllerSession in isolation, with a fake clock."""

import json
import math

import pytest
import session_talk
from controller_talk import PERIOD_S, A, Talk
from session_talk import documents, notes
from telemetry_documents import DRONE, HOVER, ROVER, Clock, changed, drone

from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.continuous_pose import POSE_RESTARTS, ContinuousPose
from drone_bridge.session.session import FINAL_GAP_S, FINAL_REPEATS, Note, Send
from drone_bridge.telemetry.codec import (
    COMMAND_TOPIC,
    DRONE_TOPIC,
    ROVER_TOPIC,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverTelemetry,
)
from drone_bridge.telemetry.units import Units
from drone_bridge.telemetry.vehicle.emulator.world import FlightSetup, LandingFlight

B, ELSEWHERE = ("127.0.0.1", 6000), ("192.0.2.1", 5000)
FORWARD = DroneCommand(pitch=0.25)


def sent(actions, to=A):
    return documents(actions, to)


def published(actions):
    return [type(message) for message in session_talk.published(actions)]


@pytest.fixture
def talk():
    """Drone that sends telemetry."""
    talk = Talk()
    talk.hear()
    return talk


# Start of telemetry.


def test_nothing_is_sent_before_telemetry():
    talk = Talk()
    assert published(talk.hear(A, ROVER)) == [RoverTelemetry]  # a rover is not a drone
    actions = [*talk.session.opened(talk.now_s), *talk.run(10.0), *talk.take(talk.session.lost(talk.now_s))]
    assert session_talk.sent(actions) == []
    assert "role: connect" in notes(actions, "")[0]  # that drone may be waiting
    assert talk.run(60.0) == []
    assert (talk.session.state, talk.session.is_open) == ("waiting for a peer", False)
    assert talk.take(talk.session.end(talk.now_s)) == []
    assert talk.session.is_over


def test_telemetry_is_fed_back_while_it_is_received():
    """Nothing has carried out the session's actions yet, so that no subscriber or message can lose it."""
    talk = Talk()
    talk.hear(A, ROVER)
    talk.hear(A, b"{}")
    assert talk.feedback.all == []
    for height in (5.0, 6.0):
        talk.hear(altimeter={"altitude": height, "vertical_velocity": 0.0})
    assert [(measured.height, now_s) for measured, now_s in talk.feedback.all] == [(5.0, 100.0), (6.0, 100.0)]


def test_commands_go_to_the_source_of_telemetry_starting_with_neutral():
    talk = Talk()
    talk.pilot.command = FORWARD
    actions = talk.hear()
    assert sent(actions) == [HOVER]
    assert published(actions) == [DroneTelemetry]
    assert len(notes(actions, "connections")) == 1
    assert (talk.session.state, talk.session.peer, talk.session.is_open) == ("connected", "127.0.0.1:5000", True)


def test_commands_come_at_their_rate_which_may_change(talk):
    talk.pilot.command = FORWARD
    forward = HOVER | {"pitch": 0.25}
    assert sent(talk.run(0.5, telemetry=A)) == [forward] * 12
    talk.parameters.rate = 100.0
    talk.run(0.04, telemetry=A)
    assert 99 <= len(sent(talk.run(1.0, telemetry=A))) <= 101


def test_velocities_that_are_flown_by_an_estimate_are_noted(talk):
    talk.pilot.command = FORWARD
    assert notes(talk.run(0.1, telemetry=A), "estimated_commands") == []
    talk.pilot.notes = [Note("estimated_commands", "It is estimated.")]
    assert notes(talk.run(0.1, telemetry=A), "estimated_commands")


def test_after_a_delay_missed_commands_are_not_sent(talk):
    talk.now_s += 0.9
    assert len(sent(talk.take(talk.session.tick(talk.now_s)))) == 1
    assert talk.session.due_s == pytest.approx(talk.now_s + PERIOD_S)


def test_an_unencodable_command_is_a_hover_and_counted(talk):
    talk.pilot.command = DroneCommand(pitch=math.nan)
    actions = talk.run(0.05)
    assert sent(actions) == [HOVER]
    assert "pitch" in notes(actions, "unencodable_messages")[0]


# Documents.


def test_a_refused_document_has_no_effect(talk):
    for data in (b"{", b'{"imu": 1}', json.dumps(changed(DRONE, velocity__x="fast"))):
        actions = talk.hear(document=data)
        assert len(notes(actions, "rejected_input")) == len(actions) == 1
    assert published(talk.hear()) == [DroneTelemetry]


def test_an_unreadable_image_affects_no_other_field(talk):
    actions = talk.hear(image=b"no picture")
    assert published(actions) == [DroneTelemetry]
    (sentence,) = notes(actions, "undecodable_images")
    assert sentence.startswith("camera.image ")


def test_late_documents_are_counted_only(talk):
    talk.clock.time -= 0.1
    assert talk.hear() == [Note("late_documents")]


def test_after_silence_no_timestamp_is_late(talk):
    talk.run(1.5)
    talk.clock.time -= 0.5
    assert published(talk.hear()) == [DroneTelemetry]


# Silence.


def test_a_silent_drone_hovers_and_gets_no_more(talk):
    """The source of a forged datagram must not receive commands forever."""
    talk.pilot.command, talk.parameters.telemetry_timeout = FORWARD, 0.4
    actions = talk.run(60.0)
    commands = sent(actions)
    assert commands[-FINAL_REPEATS:] == [HOVER] * FINAL_REPEATS
    assert HOVER not in commands[:-FINAL_REPEATS]
    assert len(commands) <= 10 + FINAL_REPEATS
    (sentence,) = notes(actions, "silences")
    assert "hover" in sentence
    assert talk.session.state == "no telemetry"
    assert talk.session.silent_s(talk.now_s) == 60.0
    assert talk.session.due_s == math.inf


def test_a_drone_that_sends_again_is_commanded_at_once(talk):
    talk.run(3.0)
    talk.pilot.command = FORWARD
    actions = [*talk.hear(), *talk.run(0.0)]
    assert sent(actions) == [HOVER | {"pitch": 0.25}]
    assert any("127.0.0.1:5000" in sentence for sentence in notes(actions, ""))
    assert talk.session.state == "connected"


def test_a_drone_that_sends_during_the_last_commands_is_commanded(talk):
    while talk.session.state == "connected":
        talk.run(0.01)
    talk.pilot.command = FORWARD
    assert sent([*talk.hear(), *talk.run(FINAL_GAP_S)]) == [HOVER | {"pitch": 0.25}]


def test_a_stall_does_not_count_as_silence(talk):
    assert talk.stall(30.0) == []
    actions = talk.run(0.9)
    assert notes(actions, "silences") == []
    assert len(sent(actions)) == 23
    assert len(notes(talk.run(0.2), "silences")) == 1


def test_a_drone_that_was_silent_before_a_stall_gets_nothing_after_it(talk):
    talk.run(3.0)
    talk.stall(30.0)
    assert sent(talk.run(10.0)) == []


# Other senders.


def test_an_active_drone_is_not_replaced(talk):
    actions = talk.hear(B)
    assert published(actions) == []
    assert len(notes(actions, "refused_peers")) == 1
    assert sent(talk.run(1.0, telemetry=A), to=B) == []


def test_another_drone_replaces_a_silent_one(talk):
    talk.run(0.9)
    assert published(talk.hear(B)) == []
    talk.run(0.2)
    actions = talk.hear(B)
    assert len(notes(actions, "connections")) == 1
    assert published(actions) == [DroneTelemetry]
    assert sent(talk.run(0.5, telemetry=B)) == []


def test_the_timestamps_of_one_drone_are_not_those_of_the_next(talk):
    talk.run(1.1)
    talk.clock.time -= 0.5
    talk.hear(B)
    assert published(talk.hear(B)) == [DroneTelemetry]
    assert talk.session.received_s == talk.now_s


def test_a_command_to_a_drone_does_not_reach_its_successor(talk):
    talk.pilot.command = FORWARD
    talk.run(6.0)
    talk.clock.time = 0.0  # of the other drone, whose timestamps are not late
    assert sent(talk.hear(B), to=B) == [HOVER]
    assert talk.pilot.restarts == 2  # one per drone
    assert set(map(str, sent(talk.run(0.3, telemetry=B), to=B))) == {str(HOVER)}


@pytest.mark.parametrize(("allowed", "is_taken"), [(["192.0.2.0/24"], False), (["192.0.2.7", "127.0.0.0/8"], True)])
def test_documents_of_peers_that_are_not_allowed_are_ignored(allowed, is_taken):
    talk = Talk(allowed)
    actions = talk.hear()
    assert bool(sent(actions)) == bool(published(actions)) == is_taken
    assert bool(notes(actions, "refused_peers")) != is_taken
    assert bool(published(talk.hear(A, ROVER))) == is_taken


def test_a_rover_is_published_from_any_sender_and_never_commanded(talk):
    actions = talk.hear(ELSEWHERE, ROVER)
    assert published(actions) == [RoverTelemetry]
    assert {action.to for action in talk.run(1.0, telemetry=A) if isinstance(action, Send)} == {A}


# Several ports of one address.


def port(number):
    return ("127.0.0.1", number)


def test_several_drones_of_one_address_are_several():
    """Each has its own port, and the other ports are refused, for any documents in any order."""
    talk, drones = Talk(), [port(5000 + number) for number in range(5)]
    clocks = [Clock(100.0 + number) for number in range(5)]
    actions = []
    for _ in range(100):
        for source, clock in zip(drones, clocks, strict=True):
            actions += talk.hear(source, drone(timestamp=clock.next()))
        actions += talk.run(PERIOD_S)
    assert len(published(actions)) == 100
    assert {action.to for action in session_talk.sent(actions)} == {drones[0]}


def test_a_suspended_drone_is_not_replaced_by_its_neighbour(talk):
    """Their timestamps may be close to each other."""
    for _ in range(10):
        talk.hear(A)
        talk.hear(B, drone(timestamp=talk.clock.time))
        talk.run(PERIOD_S)
    actions = []
    for _ in range(20):
        actions += [*talk.hear(B), *talk.run(PERIOD_S)]
    assert published(actions) == []


def test_a_drone_that_restarts_on_another_port_is_commanded_there(talk):
    talk.run(1.0, telemetry=A)
    talk.clock.time = 0.0
    assert sent(talk.run(1.1, telemetry=B))[-1] == HOVER
    talk.pilot.command = FORWARD
    assert set(map(str, sent(talk.run(0.21, telemetry=B), to=B))) == {str(HOVER | {"pitch": 0.25})}


# Waiting drone.


@pytest.fixture
def calling():
    talk = Talk(called=lambda: A)
    talk.opened = talk.take(talk.session.opened(talk.now_s))
    return talk


def test_a_waiting_drone_is_contacted_at_once_and_then_with_backoff(calling):
    assert sent(calling.opened) == [HOVER]
    times = []
    for _ in range(1000):
        if sent(calling.run(0.01)):
            times.append(calling.now_s - 100.0)
    assert times == pytest.approx([0.5, 1.5, 3.5, 5.5, 7.5, 9.5], abs=0.02)
    assert (calling.session.state, calling.session.is_open) == ("waiting for a peer", False)
    said = notes(calling.actions, "unanswered_calls")
    assert all("127.0.0.1:5000" in each and "role: listen" in each for each in said)


def test_it_is_contacted_by_the_rovers_positions_too(calling):
    rover = changed(ROVER, timestamp=2.0)
    assert sent(calling.hear(ROVER_TOPIC, json.dumps(rover))) == [rover]
    assert sent(calling.run(0.5)) == [HOVER]


def test_telemetry_ends_the_contacts_and_silence_restarts_them(calling):
    calling.pilot.command = FORWARD
    actions = calling.hear(A)
    assert sent(actions) == [HOVER]
    assert published(actions) == [DroneTelemetry]
    assert isinstance(actions[0], Send)  # hover waits for no publisher
    calling.pilot.command = FORWARD
    assert set(map(str, sent(calling.run(0.21, telemetry=A)))) == {str(HOVER | {"pitch": 0.25})}
    commands = sent(calling.run(20.0))
    assert HOVER not in commands[:20]
    assert commands[-FINAL_REPEATS - 10 :] == [HOVER] * (FINAL_REPEATS + 10)  # the last commands, and then calls
    assert len(commands) <= 26 + FINAL_REPEATS + 11
    assert calling.session.state == "no telemetry"
    calling.hear(A)
    assert calling.session.state == "connected"


def test_drone_may_send_from_any_port_and_is_commanded_at_its_own(calling):
    actions = [*calling.hear(B), *calling.run(0.21, telemetry=port(7000))]
    assert len(published(actions)) == 6
    assert {action.to for action in session_talk.sent(actions)} == {A}
    assert published(calling.hear(ELSEWHERE)) == []
    assert "other hosts" in notes(calling.actions, "refused_peers")[0]


def test_a_closed_port_is_reported_with_the_other_role_until_telemetry_arrives(calling):
    def refuse():
        return notes(calling.take(calling.session.refused("Nobody listens.", calling.now_s)), "refused_datagrams")

    assert "role: listen" in refuse()[0]
    calling.hear(A)
    assert "role: listen" not in refuse()[0]


def test_a_reopened_link_continues_to_contact_the_drone(calling):
    calling.hear(A)
    calling.take(calling.session.lost(calling.now_s))
    calling.take(calling.session.opened(calling.now_s))
    calling.run(30.0)
    assert sent(calling.take(calling.session.lost(calling.now_s))) == [HOVER]
    assert sent(calling.take(calling.session.opened(calling.now_s))) == [HOVER]
    assert sent(calling.run(0.5)) == [HOVER]
    assert sent([*calling.take(calling.session.end(calling.now_s)), *calling.run(1.0)]) == [HOVER] * FINAL_REPEATS
    assert calling.session.is_over


# A rover on the topic.


def test_a_rover_on_the_topic_is_forwarded_to_an_active_drone():
    talk = Talk()
    text = json.dumps(ROVER)
    assert sent(talk.hear(ROVER_TOPIC, text)) == []
    talk.hear()
    rover = changed(ROVER, timestamp=2.0)
    actions = talk.hear(ROVER_TOPIC, json.dumps(rover))
    assert published(actions) == [RoverTelemetry]
    assert sent(actions) == [rover]
    talk.run(3.0)
    actions = talk.hear(ROVER_TOPIC, json.dumps(changed(ROVER, timestamp=3.0)))
    assert sent(actions) == []


def test_a_drone_on_the_rovers_topic_is_refused(talk):
    assert "position is missing" in notes(talk.hear(ROVER_TOPIC), "rejected_input")[0]


# Documents on topics.


@pytest.fixture
def on_topics():
    talk = Talk(by_topics=True)
    talk.actions += talk.session.opened(talk.now_s)
    return talk


def test_on_topics_commands_begin_with_the_link(on_topics):
    assert sent(on_topics.actions, COMMAND_TOPIC) == [HOVER]
    rover = on_topics.hear(ROVER_TOPIC, json.dumps(ROVER))
    assert (published(rover), sent(rover, COMMAND_TOPIC)) == ([RoverTelemetry], [])  # no drone to forward it to
    silence = on_topics.run(2.0)
    assert sent(silence, COMMAND_TOPIC) == [HOVER] * len(notes(silence, "hover_commands")) != []
    assert notes(silence, "silences") == [""]  # of a drone that was never heard
    on_topics.pilot.command = FORWARD
    assert sent(on_topics.run(0.05), COMMAND_TOPIC)[-1] == HOVER | {"pitch": 0.25}
    assert published(on_topics.hear(DRONE_TOPIC)) == [DroneTelemetry]


def test_on_topics_commands_continue_during_silence(on_topics):
    on_topics.hear(DRONE_TOPIC)
    actions = on_topics.run(10.0)
    assert 249 <= len(sent(actions, COMMAND_TOPIC)) <= 250
    assert len(notes(actions, "silences")) == 1
    assert on_topics.session.state == "no telemetry"
    on_topics.hear(DRONE_TOPIC)
    assert on_topics.session.state == "connected"


# End.


def test_after_a_fault_a_drone_hovers_until_the_next_command(talk):
    talk.pilot.command = FORWARD
    actions = talk.take(talk.session.lost(talk.now_s))
    assert sent(actions) == [HOVER]
    assert set(map(str, sent(talk.run(0.3, telemetry=A)))) == {str(HOVER)}
    assert talk.session.state == "connected"


def test_the_last_command_to_a_silent_drone_is_a_hover(talk):
    talk.run(10.0)
    actions = [*talk.take(talk.session.end(talk.now_s)), *talk.run(1.0)]
    assert sent(actions) == [HOVER] * FINAL_REPEATS


def test_a_heading_that_begins_again_goes_on_for_pilot_and_limits():
    observed = ObservedMotion(lambda: talk.now_s)
    talk = Talk(pose=ContinuousPose(observed, 5.0, 1.0))
    talk.hear(imu__orientation__yaw=1.2)
    actions = talk.hear(imu__orientation__yaw=0.1)
    assert len(notes(actions, POSE_RESTARTS)) == 1
    first, last = (measured.yaw for measured, _ in talk.feedback.all)
    assert last == first


@pytest.mark.parametrize(
    ("opposite", "is_levelled"), [((), True), ((), False), (("telemetry.pitch", "telemetry.yaw"), True)]
)
def test_odom_follows_the_drone_within_5_percent_and_steers_nothing(opposite, is_levelled):
    units, flight = Units(opposite, is_levelled=is_levelled), LandingFlight(FlightSetup(images=False))
    talk = Talk(units=units, pose=ContinuousPose(ObservedMotion(lambda: talk.now_s), 15.0, 1.0))
    flight.follow_command(DroneCommand(pitch=0.4, roll=-0.2, yaw=0.3))
    places = []
    for _ in range(100):
        telemetry = flight.advance()
        document = units.telemetry(Units().measurement(telemetry), telemetry.camera, None)
        talk.now_s += PERIOD_S
        actions = talk.hear(document=DroneConnection().send(document))
        (pose,) = (each for each in session_talk.published(actions) if isinstance(each, DeadReckonedPose))
        places.append(((pose.x, pose.y, pose.z), tuple(flight.drone.position)))
    (reckoned, true), (first, start) = places[-1], places[0]
    way = math.dist(true, start)
    assert way > 3.0
    moved = [[now - then for now, then in zip(*each, strict=True)] for each in ((reckoned, first), (true, start))]
    assert math.dist(*moved) < 0.05 * way
    assert {measured.position for measured, _ in talk.feedback.all} == {None}


def test_a_doubted_motion_makes_the_place_unknown():
    talk = Talk(pose=ContinuousPose(ObservedMotion(lambda: talk.now_s), 15.0, 1.0))
    for talk.pilot.is_position_doubted in (False, True, False):
        talk.now_s += PERIOD_S
        pose = session_talk.published(talk.hear())[-1]
        assert math.isinf(pose.variance) is talk.pilot.is_position_doubted
