# SPDX-License-Identifier: Apache-2.0
"""Base class of sessions: effect of a stall of this process."""

import pytest

from drone_bridge.session.session import SETTLING_S, Session


class Silent(Session):
    """Session without actions."""

    def receive(self, data, source, now_s):
        return []

    def tick(self, now_s):
        return []

    def end(self, now_s):
        return []


@pytest.mark.parametrize(
    ("received_s", "since_s", "silent_s"), [(None, None, 0.0), (None, 1.0, 2.0), (1.0, 0.0, 2.0)], ids=str
)
def test_a_stall_restarts_the_timeout_of_the_peer(received_s, since_s, silent_s):
    session = Silent()
    session.received_s, session.since_s = received_s, since_s
    assert session.resume(3.0) == []
    assert session.silent_s(3.0) == 0.0
    assert session.silent_s(5.0) == silent_s
    assert session.settled_s == 3.0 + SETTLING_S
