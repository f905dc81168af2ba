# SPDX-License-Identifier: Apache-2.0
"""Backoff: delays between attempts."""

import random

import pytest

from drone_bridge.net.connector import FIRST_DELAY_S, JITTER, LONGEST_DELAY_S, Backoff

LOWEST, HIGHEST = 0.0, 1.0


class Extreme(random.Random):
    """Random source with a constant relative value between the bounds."""

    def __init__(self, place):
        super().__init__()
        self._place = place

    def random(self):
        return self._place


def delays(count, source=None):
    backoff = Backoff(source)
    return [backoff.next_delay_s() for _ in range(count)]


def test_delays_double_up_to_the_longest():
    assert delays(7, Extreme(HIGHEST)) == pytest.approx([0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0])
    assert delays(7, Extreme(LOWEST)) == pytest.approx([0.2, 0.3, 0.6, 1.2, 2.4, 3.75, 3.75])


def test_even_the_first_and_the_longest_delay_are_spread():
    """Machines that lost a peer together must not reconnect together."""
    firsts = {delays(1, random.Random(seed))[0] for seed in range(100)}
    longests = {delays(12, random.Random(seed))[-1] for seed in range(100)}
    assert len(firsts) == len(longests) == 100
    assert max(firsts) - min(firsts) > 0.8 * JITTER * FIRST_DELAY_S
    assert max(longests) - min(longests) > 0.8 * JITTER * LONGEST_DELAY_S


def test_a_reset_starts_over():
    backoff = Backoff(Extreme(LOWEST))
    for _ in range(10):
        backoff.next_delay_s()
    backoff.reset()
    assert backoff.next_delay_s() == FIRST_DELAY_S
