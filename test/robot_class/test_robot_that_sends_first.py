# SPDX-License-Identifier: Apache-2.0
"""A robot in one class that sends first: which sender it is, and where its commands go."""

import pytest
from robot_class_talk import ClientTalk, counters, data_of
from session_talk import sent

from drone_bridge.kind import Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Robot, Telemetry, Udp
from drone_bridge.robot_class.senders import TAKEOVER_S
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.clients import REFUSED
from drone_bridge.session.session import Publish
from drone_bridge.wire.addresses import AllowedPeers

ROBOT, ANOTHER_SOCKET, OTHER = ("10.0.0.1", 4000), ("10.0.0.1", 4001), ("10.0.0.2", 4000)


class Caller(Robot):
    """Robot that sends first."""

    name, control, topics, link_timeout_s = "caller", Udp(1, listen=True), ("odom",), 1.0

    def encode_command(self, velocity):
        return b"drive %g" % velocity.forward

    def decode_report(self, packet):
        return Telemetry((float(packet), 0.0, 0.0), 0.0)

    def decode_command(self, packet):
        return BodyVelocity(float(packet.split()[1]))


@pytest.fixture
def talk():
    made = ClientTalk(Caller, allowed_peers=AllowedPeers(["10.0.0.0/24"]))
    assert list(made.session.opened(made.now_s)) == made.run(2.0) == [], "it waits"
    return made


def published(actions):
    return [each.message.meaning.position[0] for each in actions if isinstance(each, Publish)]


def test_the_first_sender_is_the_robot_and_commands_go_to_its_newest_socket(talk):
    actions = talk.hear(b"1", ROBOT)
    assert (set(data_of(actions)), published(actions)) == ({b"drive 0"}, [1.0])
    talk.rank, talk.command = Rank.COMMAND, BodyVelocity(0.5)
    assert {(each.data, each.to) for each in sent(talk.run(0.2))} == {(b"drive 0.5", ROBOT)}
    assert published(talk.hear(b"2", ANOTHER_SOCKET)) == [2.0]
    assert {each.to for each in sent(talk.run(0.2))} == {ANOTHER_SOCKET}
    assert talk.session.last_words().to == ANOTHER_SOCKET
    assert {(each.data, each.to) for each in sent(talk.session.end(talk.now_s))} == {(b"drive 0", ANOTHER_SOCKET)}
    assert talk.hear(b"3", ROBOT) == [], "after the end"


@pytest.mark.parametrize(("source", "data"), [(("192.168.1.1", 4000), b"1"), (ROBOT, b"garbage"), (ROBOT, b"")])
def test_who_is_not_allowed_or_not_understood_is_sent_nothing(talk, source, data):
    assert counters(talk.hear(data, source)) == [REFUSED]
    assert not talk.session.has_peer
    assert published(talk.hear(b"1", OTHER)) == [1.0]


def test_another_robot_takes_the_place_of_a_silent_one_only(talk):
    talk.hear(b"1", ROBOT)
    assert counters(talk.hear(b"2", OTHER)) == [REFUSED]
    assert {each.to for each in sent(talk.run(TAKEOVER_S - 0.1))} == {ROBOT}, "it is greeted again"
    assert counters(talk.hear(b"2", OTHER)) == [REFUSED]
    talk.run(0.2)
    actions = talk.hear(b"2", OTHER)
    assert (published(actions), {each.to for each in sent(actions)}) == ([2.0], {OTHER})
    assert talk.session.peer == "10.0.0.2:4000"


def test_its_port_is_ours_and_nobody_emulates_it():
    (port,) = Caller.KIND.ports
    assert (port.side, Caller.KIND.emulator, Caller.KIND.server) == (Side.OPERATOR, None, None)
