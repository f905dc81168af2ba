# SPDX-License-Identifier: Apache-2.0
"""Tests of the watch of a node on simulated time."""

from types import SimpleNamespace

from drone_bridge.ros.node.simulated_time import REPORTS, TimeWatch


def test_a_clock_that_nobody_publishes_is_reported_until_it_runs():
    clock = SimpleNamespace(ros_time_is_active=True, now=lambda: now)
    now = SimpleNamespace(nanoseconds=0)
    watch = TimeWatch(SimpleNamespace(get_clock=lambda: clock))
    assert [watch.facts(False) for _ in range(REPORTS + 2)] == [None] * REPORTS + [{}, {}]
    assert watch.facts(True) is None
    now.nanoseconds = 1
    assert [watch.facts(False) for _ in range(2 * REPORTS)] == [None] * 2 * REPORTS
