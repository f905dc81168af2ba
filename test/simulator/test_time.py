# SPDX-License-Identifier: Apache-2.0
"""SimulatedTime: rate of /clock for steps at any time."""

import random

import pytest

from drone_bridge.simulator.codec import Configured
from drone_bridge.simulator.session.simulated_time import IDLE_PERIOD_S, SimulatedTime

RATE = 100.0


@pytest.fixture
def time():
    made = SimulatedTime(is_published=True)
    made.configure(Configured(RATE, 1.0, False, False))
    return made


def test_steps_at_the_maximum_rate_are_published_at_once_despite_jitter(time):
    jitter = random.Random(1)
    assert all(time.step(1000.0 + number / RATE + jitter.uniform(-0.002, 0.002)).is_due for number in range(500))


def test_more_frequent_steps_are_throttled(time):
    assert sum(time.step(1000.0 + number / 1000.0).is_due for number in range(5000)) <= 1000  # 5 s


def test_last_step_before_a_pause_is_repeated(time):
    assert [time.step(1000.0).is_due for _ in range(3)] == [True, False, False]
    for number in (1, 2):
        assert (due_s := time.due_s) == pytest.approx(1000.0 + number * IDLE_PERIOD_S)
        assert time.tick(due_s - 1e-6) is None
        assert time.tick(due_s) == (30_000_000, True)


def test_without_the_duration_of_a_step_nothing_is_published():
    unknown = SimulatedTime(is_published=True)
    with pytest.raises(ValueError, match="0 steps per second"):
        unknown.configure(Configured(0.0, 1.0, False, False))
    assert unknown.step(1000.0) == (0, False)
    assert unknown.due_s == float("inf")


def test_the_time_is_continuous_when_the_duration_of_a_step_changes(time):
    time.step(1000.0)
    time.configure(Configured(50.0, 2.0, False, False))
    assert time.step(1001.0).nanoseconds == 50_000_000
