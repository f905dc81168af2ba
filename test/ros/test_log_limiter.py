# SPDX-License-Identifier: Apache-2.0
"""Limited log: bursts pass, floods are counted."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.ros.node.log_limiter import (
    BURST,
    CONDITION_ENDS_AFTER_S,
    LINES_PER_S,
    LONGEST_INTERVAL_S,
    MAX_KINDS,
    LogLimiter,
    LogLimiters,
    OngoingLogLimiter,
)


def test_a_flood_of_one_kind_hides_no_other(clock):
    limiters = LogLimiters()
    floods = [limiters.admit(f"127.0.0.1:{port} ('{port}') is heard.") for port in range(1000)]
    assert sum(line is not None for line in floods) == BURST
    assert limiters.admit("The vehicle has to land.")
    assert limiters.admit("the same line", "count")
    assert limiters.admit("the same line", "another count")


def test_kinds_that_a_peer_makes_up_are_bounded(clock):
    limiters = LogLimiters()
    admitted = [limiters.admit(f"{'x' * number}: heard.") for number in range(1000)]
    assert sum(line is not None for line in admitted) <= MAX_KINDS + BURST
    assert limiters.admit("counted", "a count")


def test_a_long_silence_saves_up_no_more_than_a_burst(clock):
    limiter = LogLimiter()
    clock[0] += 1000 / LINES_PER_S
    admitted = [limiter.admit("line") for _ in range(2 * BURST)]
    assert admitted == ["line"] * BURST + [None] * BURST


def lines_of(limiter, clock, seconds, period_s=1.0):
    """Report a condition repeatedly, and return the seconds with a log line."""
    begin_s, said_s = clock[0], []
    while clock[0] - begin_s < seconds:
        if limiter.admit("Nobody listens."):
            said_s.append(clock[0] - begin_s)
        clock[0] += period_s
    return said_s


def test_condition_is_logged_at_its_start_and_then_at_growing_intervals(clock):
    assert lines_of(OngoingLogLimiter(), clock, 700) == [0, 10, 30, 70, 150, 310, 630]


def test_the_intervals_grow_to_a_longest_one(clock):
    said_s = lines_of(OngoingLogLimiter(), clock, 4000)
    assert said_s[-1] - said_s[-2] == LONGEST_INTERVAL_S


def test_ongoing_condition_is_logged_with_the_number_of_suppressed_lines(clock):
    limiter = OngoingLogLimiter()
    assert [limiter.admit("It is so.") for _ in range(3)] == ["It is so.", None, None]
    clock[0] += 10
    assert limiter.admit("It is so.") == "It is so. (2 lines suppressed)"


def test_a_condition_that_has_ended_is_logged_at_once_when_it_begins_again(clock):
    limiter = OngoingLogLimiter()
    lines_of(limiter, clock, 12)
    limiter.end()
    assert lines_of(limiter, clock, 2) == [0]
    clock[0] += CONDITION_ENDS_AFTER_S + 1
    assert lines_of(limiter, clock, 2) == [0]


def test_flapping_condition_does_not_fill_the_log(clock):
    limiter, said = OngoingLogLimiter(), []
    for _ in range(200):  # 20 times per second
        said.append(limiter.admit("Nobody listens."))
        limiter.end()
        clock[0] += 0.05
    lines = [line for line in said if line]
    assert lines[:BURST] == ["Nobody listens."] * BURST
    assert len(lines) == pytest.approx(BURST + 10 * LINES_PER_S, abs=1)
    assert lines[-1] == "Nobody listens. (19 lines suppressed)"


def test_a_missing_peer_is_a_warning_only_after_a_while(clock):
    logger = Mock()
    report = LinkReport(logger, "connected", now_s=lambda: clock[0])
    clock[0] += 1000
    report.start_over(5.0)
    for _ in range(80):
        report.warn_ongoing("unreachable", "It can't be reached.", is_usual_at_start=True)
        clock[0] += 1
    said = [(call[0], call.args[0].partition(" (")[0]) for call in logger.method_calls]
    assert said == [*2 * [("info", "It can't be reached.")], *2 * [("warning", "It can't be reached.")]]


@pytest.mark.parametrize("connects", [False, True])
def test_advice_is_logged_once_and_only_before_the_first_connection(clock, connects):
    logger = Mock()
    report = LinkReport(logger, "connected", now_s=lambda: clock[0])
    report.follow(SimpleNamespace(is_open=connects, since_s=clock[0], received_s=None, state="", peer=""))
    report.follow(SimpleNamespace(is_open=False, since_s=clock[0], received_s=None, state="", peer=""))
    said = []
    for _ in range(20):
        report.advise("Is it switched on?")
        said.append(logger.info.call_count)
        clock[0] += 1
    assert (said[0], said[-1]) == (0, 0 if connects else 1)


def test_other_conditions_are_warnings_at_once():
    logger = Mock()
    report = LinkReport(logger, "connected")
    report.start_over(5.0)
    report.warn_ongoing("refused", "It was refused.")
    report.count_and_warn_ongoing("undelivered", "It was held.")  # conditions are limited independently
    assert [call[0] for call in logger.method_calls] == ["warning", "warning"]
    assert report.counts["undelivered"] == 1
