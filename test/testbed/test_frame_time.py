# SPDX-License-Identifier: Apache-2.0
"""Time of a testbed's frames: repeats of a float32 are distinguished, and frozen time stays frozen."""

import numpy as np
import pytest

from drone_bridge.testbed.session.frame_time import FrameTime, float32_step

PERIOD_S = 1 / 60


def seen(times, **options):
    """Return the clock of a flight, and its times for the wire's times."""
    clock = FrameTime(**options)
    return clock, [clock.see(float(time)) for time in times]


def wire(first_s, frames):
    """Return the times of frames, rounded to a float32."""
    return [float(np.float32(first_s + number * PERIOD_S)) for number in range(frames)]


@pytest.mark.parametrize("value", [1e-3, 1.0, 1.5, 262143.9, 262144.0, 3e6])
def test_the_step_of_a_float32(value):
    assert float32_step(value) == np.spacing(np.float32(value))


def test_times_of_the_first_days_are_the_wires():
    times = wire(0.0, 600)
    assert seen(times)[1] == times


@pytest.mark.parametrize("hours", [73, 84, 840])
def test_repeats_of_a_float32_are_distinguished(hours):
    first_s = hours * 3600.0
    times = wire(first_s, 1200)
    _, made = seen(times)
    assert max(map(abs, np.array(made) - times)) <= float32_step(first_s)
    steps = np.diff(made[600:])
    assert np.all(steps > 0.0)
    assert np.mean(steps) == pytest.approx(PERIOD_S, rel=0.02)
    assert np.max(steps) < 2 * PERIOD_S


@pytest.mark.parametrize("hours", [0, 84, 840])
def test_a_stalled_time_is_not_extended_beyond_a_step(hours):
    times = wire(hours * 3600.0, 1200)
    _, made = seen(times + times[-1:] * 600)
    assert made[-1] == made[-300]
    assert made[-1] <= times[-1] + float32_step(times[-1])


def test_a_new_simulation_begins_at_0():
    _, made = seen([*wire(84 * 3600.0, 600), *wire(0.0, 600)])
    assert made[600:] == wire(0.0, 600)


@pytest.mark.parametrize(("unit_s", "is_right"), [(1.0, False), (1e-3, True)])
def test_milliseconds_are_detected_and_used_if_the_unit_is_set(unit_s, is_right):
    clock, made = seen([1000.0 * time for time in wire(0.0, 100)], unit_s=unit_s)
    assert ("time_unit" not in clock.problem) is is_right
    assert np.diff(made)[-1] == pytest.approx(PERIOD_S / 1e-3 * unit_s, rel=0.01)
