# SPDX-License-Identifier: Apache-2.0
"""A log that nobody can fill: bursts come through, floods are counted."""

import time

import pytest

from drone_bridge.log_limiter import BURST, LINES_PER_S, LogLimiter


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; clock[0] is the time in s."""
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    return now_s


def test_a_burst_comes_through_and_then_one_line_at_a_time(clock):
    limiter = LogLimiter()
    lines = [f"line {number}" for number in range(BURST)]
    assert [limiter.admit(line) for line in lines] == lines
    assert limiter.admit("too many") is None
    clock[0] += 1 / LINES_PER_S
    assert limiter.admit("the next one") == "the next one (1 line before it was left out.)"
    assert [limiter.admit("a flood") for _ in range(1000)] == [None] * 1000
    clock[0] += 1 / LINES_PER_S
    assert limiter.admit("after it") == "after it (1000 lines before it were left out.)"


def test_a_long_silence_saves_up_no_more_than_a_burst(clock):
    limiter = LogLimiter()
    clock[0] += 1000 / LINES_PER_S
    admitted = [limiter.admit("line") for _ in range(2 * BURST)]
    assert admitted == ["line"] * BURST + [None] * BURST
