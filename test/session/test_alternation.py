# SPDX-License-Identifier: Apache-2.0
"""Tests of the detector of commands that alternate with zero."""

import pytest

from drone_bridge.session.alternation import Alternation


def lasts(commands, until_s):
    """Return whether commands, pairs of a time and whether it is zero, are found to alternate at a time."""
    alternation = Alternation()
    for time_s, is_zero in sorted(commands):
        alternation.received(is_zero, time_s)
    return alternation.lasts(until_s)


def stream(rate, *, is_zero, seconds=4.0, from_s=0.0):
    return [(from_s + number / rate, is_zero) for number in range(round(seconds * rate))]


@pytest.mark.parametrize(("drives_at", "stops_at"), [(20, 20), (20, 10), (10, 50), (30, 1), (1, 30)])
def test_two_programs_in_turn_alternate_with_zero(drives_at, stops_at):
    both = stream(drives_at, is_zero=False) + stream(stops_at, is_zero=True, from_s=0.013)
    assert lasts(both, 4.0)
    assert not lasts([each for each in both if each[0] < 1.5], 1.5)
    assert not lasts(both, 6.0)


@pytest.mark.parametrize("phase_s", [0.25, 1.0, 3.0])
def test_a_person_who_stops_and_goes_does_not(phase_s):
    commands = [each for n in range(20) for each in stream(20, is_zero=n % 2, seconds=phase_s, from_s=n * phase_s)]
    assert not any(lasts([each for each in commands if each[0] < until_s], until_s) for until_s in range(60))


def test_short_stops_that_are_rare_do_not():
    commands = stream(20, is_zero=False, seconds=20.0) + stream(1 / 3, is_zero=True, seconds=20.0, from_s=0.013)
    assert not any(lasts([each for each in commands if each[0] < until_s], until_s) for until_s in range(20))


@pytest.mark.parametrize("is_zero", [True, False])
def test_one_program_does_not(is_zero):
    assert not lasts(stream(20, is_zero=is_zero), 4.0)
