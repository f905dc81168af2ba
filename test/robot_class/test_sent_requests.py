# SPDX-License-Identifier: Apache-2.0
"""A request without an answer is reported as sent only if its datagram was, also in a stall. For streams: test/net."""

from types import SimpleNamespace

import pytest
from robot_class_talk import Asked, ClientTalk

from drone_bridge.net.link_loop import LinkLoop
from drone_bridge.robot_class import BodyVelocity, Robot, Udp
from drone_bridge.session.session import EMERGENCY_AGE_S


class Mute(Robot):
    """Robot without reports and answers."""

    name, control = "mute", Udp(1)
    requests = {"takeoff": b"takeoff", "land": b"land", "emergency": b"cut"}  # noqa: RUF012

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        return b"v %g" % velocity.forward


class Clock:
    time_s = 100.0

    def now_s(self):
        return self.time_s

    def sleep(self, duration_s):
        self.time_s += duration_s


class Link:
    port = 0

    def __init__(self):
        self.sent = []

    def open(self): ...

    def cancel(self): ...

    def close(self): ...

    def files(self):
        return ()

    def receive(self):
        return None

    def send(self, data, to):
        self.sent.append(data)


@pytest.mark.parametrize(
    ("name", "stall_s", "is_sent"),
    [
        ("takeoff", 0.1, True),
        ("takeoff", 0.5, False),
        ("emergency", EMERGENCY_AGE_S - 0.1, True),
        ("emergency", EMERGENCY_AGE_S + 0.2, False),
        ("land", 10.0, True),
    ],
)
def test_a_datagram_that_a_stall_drops_is_not_reported_as_sent(name, stall_s, is_sent):
    clock, link, outcomes = Clock(), Link(), {}
    session = ClientTalk(Mute).session

    def resolve(outcome):
        outcomes.setdefault(outcome.request, outcome)

    ignore = lambda *_: None  # noqa: E731
    stage = SimpleNamespace(
        publish_event=ignore, note=ignore, call_service=ignore, link_opened=ignore, turn_ended=ignore, resolve=resolve
    )
    loop = LinkLoop("test", link, session, stage, clock)
    session.opened(clock.now_s())
    loop.turn()

    def ask(now_s):
        actions = session.ask(request, now_s)
        clock.time_s += stall_s
        return actions

    request = Asked(name, clock.now_s())
    loop.post(ask)
    loop.turn()
    assert (Mute.requests[name] in link.sent) is is_sent
    assert outcomes[request].is_success is is_sent
    assert ("not sent" in outcomes[request].sentence) is not is_sent
