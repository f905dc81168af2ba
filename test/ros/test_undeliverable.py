# SPDX-License-Identifier: Apache-2.0
"""Why a request can't reach a vehicle, in the words of its node's obstacles, without ROS."""

from types import SimpleNamespace

import pytest

from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.session.obstacles import Obstacle


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"loop": None}, Obstacle.INACTIVE.sentence()),
        ({"is_open": False}, Obstacle.DISCONNECTED.sentence()),
        ({"is_open": False, "conditions": {Obstacle.UNREACHABLE.key: SimpleNamespace(sentence="No link")}}, "No link."),
        ({"is_silent": True}, "silent for 3.0 s"),
        ({}, None),
    ],
)
def test_a_request_that_can_t_reach_the_vehicle_has_a_reason(facts, reason):
    report = SimpleNamespace(
        **{"is_open": True, "is_silent": False, "conditions": {}, **facts},
        silence_s=3.0,
        silence_sentence=lambda silence_s: f"silent for {silence_s} s",
    )
    node = SimpleNamespace(_loop=facts.get("loop", "loop"), report=report)
    assert ProtocolNode.undeliverable(node) == reason
