# SPDX-License-Identifier: Apache-2.0
"""Time of a testbed's frames, and its unit."""

import pytest

from drone_bridge.testbed.session.frame_time import FrameTime


def seen(times, **options):
    """Return the clock of a flight, and its times for the wire's times."""
    clock = FrameTime(**options)
    return clock, [clock.see(time) for time in times]


def test_times_are_the_wires_also_in_a_new_simulation():
    times = [0.0, 0.5, 0.5, 1.0, 0.0, 0.25]
    assert seen(times)[1] == times


@pytest.mark.parametrize(("unit_s", "is_right"), [(1.0, False), (1e-3, True)])
def test_milliseconds_are_detected_and_used_if_the_unit_is_set(unit_s, is_right):
    clock, made = seen([16.0 * frame for frame in range(100)], unit_s=unit_s)
    assert ("time_unit" not in clock.problem) is is_right
    assert made[-1] == pytest.approx(99 * 16.0 * unit_s)


def test_a_testbed_may_pause():
    clock, _ = seen([0.0, 5.0, 5.1, 20.0])
    assert not clock.problem
