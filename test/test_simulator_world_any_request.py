# SPDX-License-Identifier: Apache-2.0
"""Whatever clients ask of the emulated simulator: an answer that fits the request, and a world that goes on."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from offline_simulator import OfflineSimulator
from simulator_requests import ANY_REQUEST


@settings(max_examples=200)
@given(st.lists(ANY_REQUEST, max_size=30))
def test_any_requests_get_fitting_answers_and_the_world_goes_on(requests):
    simulator = OfflineSimulator()
    for request in requests:
        decoded = type(request).decode(request.encode())  # what a server would make of it
        simulator.ask(decoded)
        simulator.step()
        assert np.isfinite(simulator.scene.physics.bodies.state).all()
        lengths = np.linalg.norm(simulator.scene.physics.bodies.q, axis=0)
        assert np.allclose(lengths, 1.0)
