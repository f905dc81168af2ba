# SPDX-License-Identifier: Apache-2.0
"""Arbitrary requests to the emulated simulator: matching answers, and a running world."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_simulator import OfflineSimulator
from simulator_requests import ANY_REQUEST


@given(st.lists(ANY_REQUEST, max_size=30))
def test_any_requests_get_matching_answers_and_the_world_continues(requests):
    simulator = OfflineSimulator()
    for request in requests:
        decoded = type(request).decode(request.encode())  # as decoded by a server
        simulator.ask(decoded)
        simulator.step()
        for body in simulator.scene.entities.values():
            assert all(map(math.isfinite, (*body.x, *body.v, *body.a, *body.w)))
            assert math.hypot(*body.q) == pytest.approx(1.0)
