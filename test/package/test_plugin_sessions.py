# SPDX-License-Identifier: Apache-2.0
"""Sessions of the protocol in test/plugin: example of tests without a process or a clock."""

import sys
from types import SimpleNamespace

import pytest
from last_words import sent_by_end
from repository import TESTS
from session_talk import SessionTalk

sys.path.append(str(TESTS / "plugin"))

from kestrel_bridge.codec import Steer
from kestrel_bridge.session import STALE, ClientSession, DroneSession

from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import FINAL_REPEATS, SETTLING_S, Call, Note, Outcome, Publish, Send
from drone_bridge.wire.addresses import AllowedPeers

DRONE, CLIENT = ("127.0.0.1", 7800), ("127.0.0.1", 9000)
STATE = b"pitch:1;roll:2;yaw:3;vx:4;vy:5;vz:6;height:7;charge:8;"
PARAMETERS = {"rate": 20.0, "answer_timeout": 5.0, "command_timeout": 0.5}


class Talk(SessionTalk):
    def __init__(self, session):
        super().__init__(session)
        self.opened = list(session.opened(self.now_s))

    def hear(self, data, source=DRONE):
        return list(self.session.receive(data, source, self.now_s))


def sent(actions):
    return [action.data.decode() for action in actions if isinstance(action, Send)]


def of(actions, kind):
    return [action for action in actions if isinstance(action, kind)]


class Arbiter:
    """Arbiter with a given decision."""

    command, rank = None, Rank.NEUTRAL

    def decide(self, now_s):
        return Decision(self.rank, self.command)

    def forget(self):
        self.command, self.rank = None, Rank.NEUTRAL


@pytest.fixture
def arbiter():
    return Arbiter()


@pytest.fixture
def client(arbiter):
    return Talk(ClientSession("a drone", arbiter, lambda steer: steer, PARAMETERS.__getitem__))


@pytest.fixture
def drone():
    return Talk(DroneSession(PARAMETERS.__getitem__, AllowedPeers(["127.0.0.0/8"]), lambda: None))


def test_neutral_is_sent_first_and_last(client, arbiter):
    arbiter.command = Steer(forward=50)
    assert sent(client.opened) == ["rc 0 0 0 0"]
    assert "rc 0 50 0 0" in sent(client.run(0.1))
    actions = [*client.session.end(client.now_s), *client.run(1.0)]
    assert sent(actions) == ["rc 0 0 0 0"] * FINAL_REPEATS
    assert client.session.is_over


def test_last_words_are_what_end_sends(client, arbiter):
    assert client.session.last_words() is None
    arbiter.command = Steer(forward=50)
    client.run(0.1)
    words = client.session.last_words()
    assert list(words.neutral) * FINAL_REPEATS == sent_by_end(client.session, client.now_s)


def test_commands_from_before_a_link_are_discarded(client, arbiter):
    arbiter.command = Steer(forward=50)
    client.session.lost(client.now_s)
    client.session.opened(client.now_s)
    assert set(sent(client.run(0.3))) - {"hello"} == {"rc 0 0 0 0"}


def test_a_required_landing_is_requested_once_per_second(client, arbiter):
    client.hear(STATE)
    arbiter.rank = Rank.LANDING
    assert sent(client.run(2.9)).count("land") == 3
    assert of(client.hear(b"error land busy"), Note) == [Note("", "The drone refused land: busy")]
    assert client.hear(b"ok land") == []
    arbiter.rank = Rank.HELM
    assert "land" not in sent(client.run(3.0))


def test_a_silent_drone_is_greeted_again(client):
    assert sent(client.run(0.2)).count("hello") == 1
    client.hear(b"ok hello")
    assert "hello" not in sent(client.run(0.9))
    assert "hello" in sent(client.run(0.5))


def test_a_state_is_published(client):
    assert len(of(client.hear(STATE), Publish)) == 1


def asked(name, asked_s=100.0):
    return SimpleNamespace(name=name, asked_s=asked_s)


def test_each_request_gets_the_answer_with_its_name(client):
    takeoff, land = asked("takeoff"), asked("land")
    assert [sent(client.session.ask(each, client.now_s)) for each in (takeoff, land)] == [["takeoff"], ["land"]]
    (again,) = client.session.ask(asked("land"), client.now_s)
    assert "pending" in again.sentence
    assert of(client.hear(b"error takeoff low battery"), Outcome) == [Outcome(takeoff, False, "low battery")]
    (unanswered,) = of(client.run(6.0), Outcome)
    assert (unanswered.request, unanswered.is_success) == (land, False)


def test_requests_from_before_a_stall_and_without_a_link_are_refused(client):
    client.session.fresh_since_s = 200.0
    assert client.session.ask(asked("takeoff", 199.0), 200.0) == [Outcome(asked("takeoff", 199.0), False, STALE)]
    assert sent(client.session.ask(asked("land", 199.0), 200.0)) == ["land"]
    lost = client.session.lost(200.0)
    assert sent(lost) == ["rc 0 0 0 0"]
    assert [outcome.request.name for outcome in of(lost, Outcome)] == ["land"]
    (refused,) = client.session.ask(asked("takeoff", 201.0), 201.0)
    assert not refused.is_success


def test_a_client_steers_after_hello(drone):
    assert of(drone.hear(b"rc 0 50 0 0", CLIENT), Publish) == []
    assert sent(drone.hear(b"hello", CLIENT)) == ["ok hello"]
    assert of(drone.hear(b"rc 0 50 0 0", CLIENT), Publish) == [Publish(Steer(forward=50))]
    assert of(drone.run(1.0), Publish)[-1] == Publish(Steer())


def test_a_request_calls_a_service_whose_outcome_is_the_answer(drone):
    drone.hear(b"hello", CLIENT)
    (call,) = of(drone.hear(b"takeoff", CLIENT), Call)
    assert call.name == "takeoff"
    assert sent(drone.hear(b"land", CLIENT)) == ["error land busy"]
    assert sent(drone.session.answered(call.tag, False, "no node offers takeoff", drone.now_s)) == [
        "error takeoff no node offers takeoff"
    ]


def test_commands_right_after_a_stall_are_ignored(drone):
    drone.hear(b"hello", CLIENT)
    drone.session.resume(drone.now_s)
    assert of(drone.hear(b"rc 0 50 0 0", CLIENT), Publish) == []
    drone.now_s += SETTLING_S
    assert len(of(drone.hear(b"rc 0 50 0 0", CLIENT), Publish)) == 1
