# SPDX-License-Identifier: Apache-2.0
"""Tests of the detector of commands that come too seldom."""

import pytest

from drone_bridge.session.command_gaps import CommandGaps


def beyond(times_s, until_s, zeros=()):
    """Return the gap found at a time, with a timeout of 0.5 s, among moving commands and zeros."""
    gaps = CommandGaps()
    for time_s in sorted([*times_s, *zeros]):
        gaps.received(time_s in zeros, time_s)
    return gaps.beyond(0.5, until_s)


@pytest.mark.parametrize("gap_s", [0.6, 1.0, 2.0])
def test_a_stream_slower_than_the_timeout_is_found_while_it_lasts(gap_s):
    times_s = [number * gap_s for number in range(5)]
    assert beyond(times_s, times_s[-1] + 0.1) == pytest.approx(gap_s)
    assert beyond(times_s[:3], times_s[2] + 0.1) is None
    assert beyond(times_s, times_s[-1] + 3.1) is None


def test_no_other_commands_are_found():
    assert beyond([number / 20 for number in range(100)], 5.0) is None
    assert beyond([0.0, 10.0, 20.0, 30.0, 40.0], 40.1) is None
    assert beyond([0.0, 1.0, 2.0, 3.0, 4.0], 4.1, zeros=[0.3, 1.3, 2.3, 3.3]) is None


def test_the_time_after_a_zero_is_no_gap():
    assert beyond([0.0, 1.2, 2.4, 3.6], 3.7, zeros=[0.6, 1.8, 3.0]) is None
