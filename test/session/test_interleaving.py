# SPDX-License-Identifier: Apache-2.0
"""Interleaving: publishers of one topic by the sequence numbers of its messages."""

import pytest

from drone_bridge.session.interleaving import Interleaving


def interleaves(*publishers, until_s=10.0, look_s=1.1):
    """Return when several publishers, each with the time of its first message, number and period, are first noticed."""
    found, sent = Interleaving(), []
    for first_s, number, period_s in publishers:
        times = range(round((until_s - first_s) / period_s))
        sent += [(first_s + index * period_s, number + index) for index in times]
    noticed = []
    for look in range(1, round(until_s / look_s)):
        now_s = look * look_s
        while sent and min(sent)[0] <= now_s:
            sent.remove(earliest := min(sent))
            found.received(earliest[1], now_s)
        noticed += [now_s] if found.lasts(now_s) else []
    return noticed[0] if noticed else None


@pytest.mark.parametrize("number", [1, 2, 40, 41, 10_000])
@pytest.mark.parametrize(("at_s", "period_s"), [(0.02, 0.05), (0.051, 0.05), (0.02, 0.1), (0.07, 1.0), (0.0, 0.02)])
def test_two_publishers_are_noticed_whatever_their_numbers(number, at_s, period_s):
    assert interleaves((0.0, 40, 0.05), (at_s, number, period_s)) <= 3.5


@pytest.mark.parametrize("period_s", [0.02, 0.1, 5.0])
def test_one_publisher_is_no_second_one(period_s):
    assert interleaves((0.0, 40, period_s), until_s=60.0) is None


def test_a_restarted_publisher_is_no_second_one():
    found = Interleaving()
    for now_s, number in enumerate([40, 41, 42, 1, 2, 3, 4]):
        found.received(number, float(now_s))
        assert not found.lasts(float(now_s))


def test_it_ends_when_one_of_them_falls_silent():
    found = Interleaving()
    for number in (40, 1, 41, 2):
        found.received(number, 10.0)
    assert found.lasts(12.0)
    assert not found.lasts(13.1)
