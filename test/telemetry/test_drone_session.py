# SPDX-License-Identifier: Apache-2.0
"""TelemetryDroneSession of telemetry_server in isolation, with a fake clock."""

import base64
import json
from dataclasses import replace

import pytest
import session_talk
from session_talk import SessionTalk, notes, published
from telemetry_documents import HOVER, ROVER
from verbs import by_session, verbs

from drone_bridge.session.operator_command import OPERATORS_LOST
from drone_bridge.session.session import AFTER_STALLS, REJECTED, SETTLING_S
from drone_bridge.telemetry.codec import DRONE_TOPIC, ROVER_TOPIC, Camera, DroneCommand, RoverTelemetry, Vector
from drone_bridge.telemetry.sample_conversation import JPEG, conversation
from drone_bridge.telemetry.vehicle.session import drone
from drone_bridge.wire.addresses import AllowedPeers

PERIOD_S = 0.04
FORWARD = DroneCommand(0.25, 0.5, 0.0, -0.25)
TELEMETRY, SEEN_ROVER = (conversation()[number].message for number in (2, 4))


class Talk(SessionTalk):
    """Session of a drone, with its parameters and operator."""

    def __init__(self, max_document_bytes=65507, **roles):
        parameters = drone.TelemetryDroneParameters()
        super().__init__(drone.TelemetryDroneSession("127.0.0.1:5555", parameters, max_document_bytes, **roles))

    def hear(self, command, source="operator"):
        data = command if isinstance(command, bytes) else json.dumps(command).encode()
        return list(self.session.receive(data, source, self.now_s))

    def tell(self, telemetry=TELEMETRY):
        self.now_s += PERIOD_S
        return list(self.session.send(telemetry, self.now_s))


def command(thrust, pitch=0.0, roll=0.0, yaw=0.0):
    return {"thrust": thrust, "pitch": pitch, "roll": roll, "yaw": yaw}


def documents(actions, to=DRONE_TOPIC):
    return session_talk.documents(actions, to)


@pytest.fixture
def talk():
    talk = Talk()
    opened = talk.session.opened(talk.now_s)
    assert len(notes(opened, "connections")) == 1
    return talk


# Commands.

FORWARD_DOCUMENT = command(0.25, 0.5, 0.0, -0.25)


def test_command_is_published_then_repeated_and_ends_in_one_neutral(talk):
    assert published(talk.hear(FORWARD_DOCUMENT)) == [FORWARD]
    actions = talk.run(0.5)
    assert published(actions) == [FORWARD] * 10
    actions = talk.run(60.0)
    assert published(actions) == [DroneCommand()]
    (lost,) = notes(actions, OPERATORS_LOST)
    assert lost == "127.0.0.1:5555 was silent for 0.5 s: zero was commanded (command_timeout)."


def test_an_operator_that_leaves_after_neutral_is_not_lost(talk):
    talk.hear(HOVER)
    actions = talk.run(60.0)
    assert published(actions)[-1] == DroneCommand()
    assert notes(actions, OPERATORS_LOST) == []


def test_each_command_restarts_the_timeout(talk):
    for _ in range(20):
        talk.hear(FORWARD_DOCUMENT)
        assert DroneCommand() not in published(talk.run(0.4))
    assert published(talk.run(0.2))[-1] == DroneCommand()


def test_a_refused_document_does_not_extend_a_command(talk):
    talk.hear(FORWARD_DOCUMENT)
    talk.now_s += 0.4
    assert "thrust is 'up'" in notes(talk.hear(command("up")), "rejected_input")[0]
    assert talk.session.silent_s(talk.now_s) == 0.0  # it is not silent
    assert published(talk.run(0.2))[-1] == DroneCommand()


#: By the document, which has one command and no other verb.
VERBS = {
    json.dumps(command(0.25, 0.5, 0.0, -0.25)): FORWARD, json.dumps(command(0)): DroneCommand(),
    json.dumps(command(7, -1e300, 0.5)): [DroneCommand(1.0, -0.5, 0.5), drone.CLAMPED],
    json.dumps(command("up")): REJECTED, '{"thrust": 1e999, "pitch": 0, "roll": 0, "yaw": 0}': REJECTED,
    '{"thrust": 0.5}': REJECTED, '{"command": "land"}': REJECTED, "land": REJECTED,
    json.dumps(ROVER): RoverTelemetry(Vector(1.5, 0.8, 0.15), Vector(0.3, 0.4, 0.0), "circular", 1.234),
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(talk, sent, meaning):
    assert by_session(talk.hear(sent.encode()), drone.CLAMPED, REJECTED) == meaning


def test_the_end_is_a_single_neutral_command(talk):
    talk.hear(FORWARD_DOCUMENT)
    assert published(talk.session.end(talk.now_s)) == [DroneCommand()]
    assert talk.session.is_over


def test_a_lost_link_ends_the_current_command_and_all_sending(talk):
    talk.hear(FORWARD_DOCUMENT)
    assert published(talk.session.lost(talk.now_s)) == [DroneCommand()]
    assert (talk.session.state, talk.session.is_open) == ("waiting for a peer", False)
    assert talk.tell() == []
    talk.session.opened(talk.now_s)
    assert documents(talk.tell())


def test_an_operator_without_commands_ends_without_neutral(talk):
    assert talk.session.end(talk.now_s) == []
    assert talk.session.is_over


# Stalls of this process.


def test_after_a_stall_commands_are_ignored_until_stale_data_are_read(talk):
    talk.stall(3.0)
    actions = talk.hear(FORWARD_DOCUMENT)
    assert published(actions) == []
    assert len(notes(actions, AFTER_STALLS)) == 1
    talk.now_s += SETTLING_S
    assert published(talk.hear(FORWARD_DOCUMENT)) == [FORWARD]


def test_a_command_from_before_a_stall_ends_with_it(talk):
    talk.hear(FORWARD_DOCUMENT)
    actions = [*talk.stall(3.0), *talk.run(1.0)]
    assert published(actions) == [DroneCommand()]
    assert notes(actions, OPERATORS_LOST) == []
    assert len(notes(actions, AFTER_STALLS)) == 1


def test_a_fresh_command_outlives_a_short_stall(talk):
    talk.hear(FORWARD_DOCUMENT)
    assert published(talk.stall(0.35)) == []
    assert published(talk.run(0.04)) == [FORWARD]


def test_a_stop_right_after_a_stall_ends_a_command_from_before(talk):
    talk.hear(FORWARD_DOCUMENT)
    talk.stall(0.35)
    stopped = talk.hear(command(0.0, 0.0, 0.0, 0.0))
    assert published([*stopped, *talk.run(0.04)]) == [DroneCommand()]


# Disconnected operators.


def test_an_operator_that_never_commands_is_not_silent(talk):
    talk.now_s += 100.0
    assert talk.session.silent_s(talk.now_s) == 0.0
    talk.hear(HOVER)
    talk.now_s += 7.0
    assert talk.session.silent_s(talk.now_s) == 7.0


# An operator on changing ports, called by the drone.


def test_a_contacted_operator_may_command_from_any_port_of_its_host():
    talk = Talk(called=lambda: ("127.0.0.1", 5555))
    talk.session.opened(talk.now_s)
    assert published(talk.hear(FORWARD_DOCUMENT, ("127.0.0.1", 6000))) == [FORWARD]
    assert published(talk.hear(command(0.0), ("192.0.2.1", 5555))) == []
    assert documents(talk.tell())


# Operators of a waiting drone.

A, B, ELSEWHERE = ("127.0.0.1", 5000), ("127.0.0.1", 6000), ("192.0.2.1", 5000)


@pytest.fixture
def waiting():
    talk = Talk(callers=AllowedPeers(["127.0.0.0/8"]))
    assert list(talk.session.opened(talk.now_s)) == []
    return talk


def test_a_waiting_drone_sends_nothing_before_it_is_contacted(waiting):
    assert waiting.tell() == []
    assert (waiting.session.state, waiting.session.is_open) == ("waiting for a peer", False)
    assert waiting.run(60.0) == []


@pytest.mark.parametrize("called_by", [ROVER, HOVER])
def test_it_answers_a_rovers_position_and_any_command(waiting, called_by):
    actions = waiting.hear(called_by, A)
    assert len(notes(actions, "connections")) == 1
    assert documents(waiting.tell(), A)
    assert (waiting.session.state, waiting.session.peer) == ("connected", "127.0.0.1:5000")
    waiting.now_s += 1.0
    assert documents(waiting.session.send_rover(SEEN_ROVER, waiting.now_s), A)


def test_it_sends_to_the_newest_sender(waiting):
    waiting.hear(FORWARD_DOCUMENT, A)
    actions = waiting.hear(command(0.5), B)
    assert published(actions) == [DroneCommand(0.5)]
    assert "has replaced 127.0.0.1:5000" in notes(actions, "takeovers")[0]
    assert documents(waiting.tell(), B)
    waiting.hear(FORWARD_DOCUMENT, A)
    assert documents(waiting.tell(), A)


def test_an_invalid_document_selects_no_operator(waiting):
    assert len(notes(waiting.hear(b"hello", A), "rejected_input")) == 1
    assert waiting.tell() == []
    waiting.hear(FORWARD_DOCUMENT, A)
    waiting.hear(b"hello", B)
    assert documents(waiting.tell(), A)


def test_a_sender_that_is_not_allowed_is_ignored(waiting):
    actions = waiting.hear(FORWARD_DOCUMENT, ELSEWHERE)
    assert published(actions) == []
    assert "allowed_peers" in notes(actions, "refused_peers")[0]
    assert waiting.tell() == []


def test_a_silent_operator_gets_no_more_telemetry(waiting):
    waiting.hear(FORWARD_DOCUMENT, A)
    actions = waiting.run(4.9)
    assert published(actions)[-1] == DroneCommand()
    assert documents(waiting.tell(), A)
    actions = waiting.run(0.2)
    assert len(notes(actions, "silences")) == 1
    assert (waiting.session.state, waiting.session.is_open) == ("waiting for a peer", False)
    assert waiting.tell() == []
    assert waiting.run(60.0) == []
    waiting.hear(ROVER, A)
    assert documents(waiting.tell(), A)


def test_a_stall_does_not_count_as_silence_of_the_operator(waiting):
    waiting.hear(FORWARD_DOCUMENT, A)
    waiting.stall(30.0)
    waiting.run(4.9)
    assert documents(waiting.tell(), A)


def test_after_a_lost_link_it_waits_again(waiting):
    waiting.hear(FORWARD_DOCUMENT, A)
    assert published(waiting.session.lost(waiting.now_s)) == [DroneCommand()]
    waiting.session.opened(waiting.now_s)
    assert waiting.tell() == []
    assert notes(waiting.run(60.0), "silences") == [], "its operator is forgotten"


# Documents.


def test_nothing_is_sent_without_a_link():
    talk = Talk()
    assert talk.tell() == []
    assert talk.session.send_rover(SEEN_ROVER, talk.now_s) == []


def test_documents_are_rate_limited(talk):
    sent = 0
    for _ in range(400):
        talk.now_s += 0.0025
        sent += len(documents(talk.session.send(TELEMETRY, talk.now_s)))
    assert 25 <= sent <= 26


def seen(ending=b"0"):
    """Return telemetry with a new image."""
    return replace(TELEMETRY, camera=Camera(1, 1, 60.0, JPEG + ending))


def test_one_of_five_documents_has_an_image_the_first_one_too(talk):
    images = [documents(talk.tell(seen(ending=bytes([n]))))[0]["camera"]["image"] for n in range(11)]
    assert [bool(image) for image in images] == [number % 5 == 0 for number in range(11)]


def test_each_image_is_sent_once_and_the_newest_one_goes(talk):
    assert documents(talk.tell())[0]["camera"] == {"width": 320, "height": 240, "image": None}
    talk.session.lost(talk.now_s)
    missed = seen()
    assert talk.tell(missed) == []
    talk.session.opened(talk.now_s)
    newest = seen(ending=b"2")
    given = [missed] * 5 + [seen(ending=b"1"), *[newest] * 10]
    cameras = [documents(talk.tell(telemetry))[0]["camera"] for telemetry in given]
    images = [base64.b64decode(camera["image"]) for camera in cameras if camera["image"]]
    assert images == [JPEG + b"1", newest.camera.jpeg]
    assert [bool(camera["image"]) for camera in cameras].index(True) == 5
    assert (cameras[-1]["width"], cameras[-1]["height"]) == (1, 1)


def test_an_image_too_large_for_the_link_is_omitted():
    talk = Talk(max_document_bytes=200)
    talk.session.opened(talk.now_s)
    image = seen()
    actions = talk.tell(image)
    assert "a datagram holds 200" in notes(actions, drone.TOO_LARGE)[0]
    assert documents(actions)[0]["camera"]["image"] is None
    assert notes(talk.tell(image), drone.TOO_LARGE) == []


def test_an_unencodable_image_affects_no_other_field(talk):
    large = seen(ending=bytes(4 * 1024 * 1024))
    actions = talk.tell(large)
    assert len(notes(actions, "unencodable_messages")) == 1
    assert documents(actions)[0]["camera"]["image"] is None
    assert notes(talk.tell(large), "unencodable_messages") == []


def test_the_rover_is_sent_with_every_other_document(talk):
    sent = []
    for _ in range(10):
        talk.now_s += PERIOD_S
        sent += documents(talk.session.send_rover(SEEN_ROVER, talk.now_s), ROVER_TOPIC)
    assert 5 <= len(sent) <= 6
    assert sent[0]["position"] == {"x": 1.0, "y": -2.0, "z": 0.0}


def test_unencodable_telemetry_is_counted(talk):
    nowhere = RoverTelemetry(Vector(float("nan"), 0.0, 0.0), Vector(0.0, 0.0, 0.0), "circular")
    actions = talk.session.send_rover(nowhere, talk.now_s)
    assert documents(actions, ROVER_TOPIC) == []
    assert len(notes(actions, "unencodable_messages")) == 1
