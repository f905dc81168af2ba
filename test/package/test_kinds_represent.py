# SPDX-License-Identifier: Apache-2.0
"""Protocols that represent a mechanism in the gate."""

import pytest

from drone_bridge.kind import Mechanism, kinds


@pytest.mark.parametrize("mechanism", Mechanism)
def test_one_protocol_represents_a_mechanism(mechanism):
    (kind,) = [kind for kind in kinds().values() if mechanism in kind.represents]
    assert kind.is_stream is (mechanism in (Mechanism.STREAM, Mechanism.PROCESS))
    assert kind.emulator
    assert kind.server
