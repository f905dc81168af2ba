# SPDX-License-Identifier: Apache-2.0
"""Stamps of a clock that differs from ours: what is learned of it, and what must never be taken for fresh."""

import random

import pytest

from drone_bridge.ros.clock_difference import PERIOD_S, PERIODS, ClockDifference, Judgement

ALLOWED_S = 0.5
RATE_HZ = 20.0
LEARNING_S = PERIOD_S * PERIODS + 1.0
OUR_TIME_S = 1_700_000_000.0  # when the clock that nobody sets shows 0
DIFFERENCES_S = [0.0, 0.3, 2.0, 45.0, 1e6, -0.05, -2.0, -1e6, 1.7e9 - 100]


class Host:
    """Somebody whose clock is so far behind ours, and who gives commands."""

    def __init__(self, difference_s, clock=None):
        self.difference_s = difference_s
        self.clock = clock or ClockDifference()
        self.our_time_s = OUR_TIME_S

    def give(self, given_s, arrives_s):
        """Give a command at a time of the clock that nobody sets; return what is thought of it when it arrives."""
        assert arrives_s >= given_s
        stamp_s = self.our_time_s + given_s - self.difference_s
        return self.clock.judge(stamp_s, self.our_time_s + arrives_s - stamp_s, arrives_s, ALLOWED_S)

    def stream(self, begin_s, seconds, delay=lambda given_s: 0.002):
        """Give commands at a steady pace, which overtake none; return (given, arrived, judgement) of each."""
        arrives_s, judged = begin_s, []
        for number in range(int(seconds * RATE_HZ)):
            given_s = begin_s + number / RATE_HZ
            arrives_s = max(arrives_s, given_s + delay(given_s))
            judged.append((given_s, arrives_s, self.give(given_s, arrives_s)))
        return judged


def judgements(stream):
    return [judgement for _, _, judgement in stream]


def followed_ages_s(stream):
    return [arrived_s - given_s for given_s, arrived_s, judgement in stream if judgement is Judgement.FRESH]


@pytest.mark.parametrize("difference_s", [0.0, 0.3, -0.05])
def test_clocks_that_agree_well_enough_need_no_learning(difference_s):
    host = Host(difference_s)
    assert set(judgements(host.stream(0.0, 10.0))) == {Judgement.FRESH}
    assert not host.clock.is_learned


@pytest.mark.parametrize(("difference_s", "first"), [(2.0, Judgement.STALE), (-2.0, Judgement.AHEAD)])
def test_a_difference_is_learned_from_a_steady_stream_and_nothing_is_followed_before(difference_s, first):
    host = Host(difference_s)
    judged = judgements(host.stream(0.0, LEARNING_S))
    number = judged.index(Judgement.FRESH)
    assert number >= PERIOD_S * PERIODS * RATE_HZ
    assert judged == [first] * number + [Judgement.FRESH] * (len(judged) - number)
    assert host.clock.is_learned
    assert host.clock.difference_s == pytest.approx(difference_s, abs=0.01)


@pytest.mark.parametrize("difference_s", DIFFERENCES_S)
def test_queued_commands_are_refused_whatever_the_clocks_say(difference_s):
    """A cut of 5 s; what was given meanwhile then comes at once."""
    host = Host(difference_s)
    host.stream(0.0, LEARNING_S)
    flushed = [host.give(given_s, 15.0) for given_s in (10.0, 11.0, 12.0, 13.0, 14.0, 14.4)]
    assert not any(judgement is Judgement.FRESH for judgement in flushed)
    assert set(judgements(host.stream(15.1, 10.0))) == {Judgement.FRESH}


@pytest.mark.parametrize("difference_s", DIFFERENCES_S)
@pytest.mark.parametrize("delay_s", [0.8, 3.0, 60.0])
def test_a_lasting_delay_is_never_taken_for_a_clock_difference(difference_s, delay_s):
    host = Host(difference_s)
    begin_s = LEARNING_S
    host.stream(0.0, begin_s)
    delayed = host.stream(begin_s, 120.0, lambda _: delay_s)
    assert not followed_ages_s(delayed)
    assert judgements(delayed)[-1] is Judgement.DELAYED
    again_s = delayed[-1][1] + 0.1
    assert set(judgements(host.stream(again_s, 5.0))) == {Judgement.FRESH}


@pytest.mark.parametrize("difference_s", DIFFERENCES_S)
@pytest.mark.parametrize("pace", [1.03, 1.2, 2.0, 10.0])
def test_a_draining_queue_is_never_taken_for_a_clock_difference(difference_s, pace):
    """The first commands of all come out of a queue of 20 s, faster than they were given."""
    host = Host(difference_s)
    judged = host.stream(0.0, 20.0 * pace / (pace - 1), lambda given_s: max(0.002, 20.0 - given_s * (pace - 1) / pace))
    assert max(followed_ages_s(judged), default=0.0) <= ALLOWED_S + 0.15


@pytest.mark.parametrize("difference_s", DIFFERENCES_S)
@pytest.mark.parametrize("seed", range(3))
def test_old_commands_are_never_followed_on_a_bad_link(difference_s, seed):
    """Jitter, and now and then a stall of some seconds after which all that was held back comes at once."""
    source = random.Random(seed)
    stalls = sorted(source.uniform(LEARNING_S, 300.0) for _ in range(20))

    def delay(given_s):
        held_s = max((stall_s + 3.0 - given_s for stall_s in stalls if stall_s <= given_s < stall_s + 3.0), default=0.0)
        return held_s + 0.01 + source.expovariate(1 / 0.02)

    host = Host(difference_s)
    ages_s = followed_ages_s(host.stream(0.0, 300.0, delay))
    assert max(ages_s) <= ALLOWED_S + 0.15
    assert len(ages_s) > 100 * RATE_HZ  # it is of use as well


def test_nothing_is_learned_from_one_command_repeated():
    host = Host(2.0)
    assert not any(host.give(0.0, number / RATE_HZ) is Judgement.FRESH for number in range(400))
    assert not host.clock.is_learned


def test_nothing_is_learned_from_occasional_commands():
    host = Host(10.0)
    assert not any(host.give(second, second) is Judgement.FRESH for second in range(100))


def test_clock_drift_is_followed():
    """By 50 ppm for two hours, and then back."""
    host = Host(100.0)
    host.stream(0.0, LEARNING_S)
    for parts_per_million in (50, -50):
        for minute in range(120):
            host.difference_s += 60e-6 * parts_per_million
            begin_s = 60.0 * (minute + 1) + (0.0 if parts_per_million > 0 else 7200.0)
            assert set(judgements(host.stream(begin_s, 2.0))) == {Judgement.FRESH}


@pytest.mark.parametrize("step_s", [3.0, -3.0, 1e9])
def test_setting_our_own_clock_restarts_learning(step_s):
    host = Host(-step_s)  # as it will be right then
    host.stream(0.0, LEARNING_S)
    assert host.clock.is_learned
    host.our_time_s += step_s
    host.difference_s += step_s
    assert set(judgements(host.stream(10.0, 5.0))) == {Judgement.FRESH}
    assert not host.clock.is_learned


def test_a_remote_clock_set_forward_is_learned_and_one_set_back_is_reported():
    host = Host(0.0)
    host.stream(0.0, 5.0)
    host.difference_s = -4.0
    forward = judgements(host.stream(10.0, LEARNING_S))
    assert (forward[0], forward[-1]) == (Judgement.AHEAD, Judgement.FRESH)
    host.difference_s = 0.0
    back = judgements(host.stream(20.0, LEARNING_S))
    assert (back[0], back[-1]) == (Judgement.STALE, Judgement.DELAYED)
    host.clock.forget()  # as when somebody else publishes
    assert set(judgements(host.stream(30.0, LEARNING_S))) == {Judgement.FRESH}


@pytest.mark.parametrize(("difference_s", "refused"), [(-5.0, Judgement.AHEAD), (5.0, Judgement.STALE)])
def test_two_publishers_with_different_clocks_do_not_lock_each_other_out(difference_s, refused):
    ours = Host(0.0)
    theirs = Host(difference_s, ours.clock)
    judged = []
    for number in range(400):
        begin_s = number / RATE_HZ
        assert theirs.give(begin_s, begin_s) is refused
        judged.append(ours.give(begin_s + 0.01, begin_s + 0.01))
    assert set(judged[1:]) == {Judgement.FRESH}


def test_without_learning_clocks_are_taken_to_agree():
    host = Host(2.0, ClockDifference(may_learn=False))
    assert set(judgements(host.stream(0.0, 20.0))) == {Judgement.STALE}
    assert set(judgements(Host(-2.0, ClockDifference(may_learn=False)).stream(0.0, 20.0))) == {Judgement.FRESH}


def test_a_publisher_that_starts_with_an_old_command_is_followed_a_second_later():
    host = Host(0.0)
    assert [host.give(0.0, 30.0 + number / RATE_HZ) for number in range(3)] == [Judgement.STALE] * 3
    judged = judgements(host.stream(30.2, 3.0))
    assert judged[0] is Judgement.QUEUED
    assert set(judged[int(1.2 * RATE_HZ) :]) == {Judgement.FRESH}


def test_memory_does_not_grow():
    host = Host(0.0)
    host.stream(0.0, 600.0)
    assert len(host.clock._least) == PERIODS
