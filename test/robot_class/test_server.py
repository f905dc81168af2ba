# SPDX-License-Identifier: Apache-2.0
"""The server of a robot in one class, without a node: which requests of its clients pass while it is held."""

from types import SimpleNamespace

import pytest
from own_robots import Tello

Server = Tello.KIND.server.make


class Caller:
    """Notes for each call whether it moves the vehicle."""

    def __init__(self):
        self.moves = {}

    def call(self, name, finish, request=None, *, moves=True):
        self.moves[name] = moves


@pytest.mark.parametrize(
    ("name", "moves"), [("takeoff", True), ("light", True), ("land", False), ("emergency", False), ("safe", False)]
)
def test_only_what_ends_a_flight_or_a_motion_is_accepted_on_hold(name, moves):
    node = SimpleNamespace(_caller=Caller(), robot=SimpleNamespace(always_accepted={"land", "emergency", "safe"}))
    Server.call_service(node, name, ("client", name))
    assert node._caller.moves == {name: moves}
