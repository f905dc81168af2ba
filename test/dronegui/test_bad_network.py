# SPDX-License-Identifier: Apache-2.0
"""Bad network of the GUI's emulator."""

import itertools

import pytest

from drone_bridge.programs.bad_network import BadNetwork

pytestmark = pytest.mark.exhaustive


def carried(seed, loss, reorder, count=1000):
    network = BadNetwork(loss, reorder, seed)
    return [arrived for number in range(count) for arrived in network.carry(number)]


def test_packets_are_lost_at_the_configured_rate():
    assert carried(1, 0.0, 0.0) == list(range(1000))
    arrived = carried(1, 0.3, 0.0)
    assert arrived == sorted(arrived)
    assert len(arrived) == pytest.approx(700, abs=50)
    assert carried(1, 1.0, 0.0) == []


def test_a_bad_network_lets_packets_be_overtaken():
    arrived = carried(1, 0.0, 0.3)
    assert set(arrived) >= set(range(999))
    assert len(arrived) == len(set(arrived))
    overtaken = sum(later < earlier for earlier, later in itertools.pairwise(arrived))
    assert overtaken == pytest.approx(230, abs=50)
    assert arrived == carried(1, 0.0, 0.3) != carried(2, 0.0, 0.3)
