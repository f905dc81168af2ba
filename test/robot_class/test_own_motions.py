# SPDX-License-Identifier: Apache-2.0
"""A robot that a request sets in motion, such as to its dock, which a zero command does not end."""

from dataclasses import dataclass

import pytest
from session_talk import SessionTalk, sent

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Robot, Telemetry
from drone_bridge.robot_class.client_session import RobotClassOperatorSession
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import FINAL_REPEATS

PARAMETERS = {"rate": 20.0, "link_timeout": 3.0, "command_timeout": 0.5}
ZERO, FORWARD = BodyVelocity(), BodyVelocity(0.3)


class Cleaner(Robot):
    """Robot that cleans by itself until it hears safe."""

    name, port, stop = "cleaner", 1, "safe"
    requests = {"clean": b"clean\n", "safe": b"safe\n"}  # noqa: RUF012

    def split(self, data):
        return data.find(b"\n") + 1

    def decode(self, packet):
        return Telemetry()

    def encode_command(self, velocity):
        return b"v %g\n" % velocity.forward


class CleanerByDatagrams(Cleaner):
    name, transport = "cleaner_by_datagrams", "udp"


@dataclass(eq=False)
class Asked:
    name: str
    asked_s: float = 1e9


class Talk(SessionTalk):
    def __init__(self, robot):
        self.rank, self.command = Rank.NEUTRAL, None
        is_stream = robot.transport == "tcp"
        super().__init__(RobotClassOperatorSession(robot, self, PARAMETERS.__getitem__, "robot", is_stream=is_stream))
        self.session.connected("robot" if is_stream else None, self.now_s)
        self.hear()

    def hear(self):
        self.session.receive(b"report\n", "robot", self.now_s)

    def decide(self, now_s):
        return Decision(self.rank, self.command)

    def start(self, now_s): ...

    def ask(self, name):
        return [each.data for each in sent(self.session.ask(Asked(name), self.now_s))]

    def sends(self):
        return [each.data for each in sent(self.run(0.3))]


@pytest.fixture(params=[Cleaner, CleanerByDatagrams])
def cleaning(request):
    talk = Talk(request.param)
    assert talk.ask("clean") == [b"clean\n"]
    assert b"safe\n" not in talk.sends(), "while nobody commands it"
    return talk


@pytest.mark.parametrize(
    ("rank", "command"), [(Rank.HOLD, None), (Rank.COMMAND, ZERO), (Rank.COMMAND, FORWARD), (Rank.HELM, FORWARD)]
)
def test_hold_and_commands_end_a_motion_by_request(cleaning, rank, command):
    cleaning.rank, cleaning.command = rank, command
    first, *rest = cleaning.sends()
    assert first == b"safe\n"
    repeats = 0 if cleaning.session._is_stream else FINAL_REPEATS - 1
    assert rest.count(b"safe\n") == repeats


def test_last_words_end_a_motion_by_request(cleaning):
    words = cleaning.session.last_words()
    assert words.neutral == (b"safe\n", b"v 0\n")
    cleaning.session.neutral_sent(cleaning.now_s)
    assert cleaning.session.last_words() is None


def test_the_request_to_stop_leaves_nothing_to_end(cleaning):
    assert cleaning.ask("safe") == [b"safe\n"]
    assert cleaning.session.last_words() is None
    cleaning.rank = Rank.HOLD
    assert b"safe\n" not in cleaning.sends()


def test_the_end_and_a_stall_end_a_motion_by_request(cleaning):
    assert next(each.data for each in sent(cleaning.session.resume(cleaning.now_s))) == b"safe\n"
    cleaning.ask("clean")
    assert next(each.data for each in sent(cleaning.session.end(cleaning.now_s))) == b"safe\n"


def test_a_name_without_a_request_is_refused():
    with pytest.raises(ValueError, match="stop"):
        type("Wrong", (Robot,), {"name": "wrong", "port": 1, "stop": "safe"})
