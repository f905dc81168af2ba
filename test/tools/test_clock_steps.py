# SPDX-License-Identifier: Apache-2.0
"""Bags whose recorder's clock was set: the order of arrival, and what play says. Without a ROS graph."""

import time

import pytest
from std_msgs.msg import Int32
from written_bags import write_bag

from drone_bridge.tools.bags.bag import LONGEST_GAP_S, BagMessage, BagReader
from drone_bridge.tools.play.player import Player, Span
from drone_bridge.tools.record import arrival

SECOND = 10**9
HOUR = 3600 * SECOND
START = 1_700_000_000 * SECOND


@pytest.fixture
def at(monkeypatch):
    """at(passed, set_by) is the machine's time, s from the beginning, after somebody has set its clock."""

    now = {"time": START, "steady": 77}
    monkeypatch.setattr(time, "time_ns", lambda: now["time"])
    monkeypatch.setattr(arrival, "steady_ns", lambda: now["steady"])

    def change(passed_s, set_by_s=0):
        now.update(time=START + (passed_s + set_by_s) * SECOND, steady=77 + passed_s * SECOND)

    return change


@pytest.mark.parametrize("by_s", [3600, -3600, -1_700_000_000])
def test_times_go_on_where_the_clock_is_set(at, by_s):
    clock = arrival.ArrivalClock()
    at(5)
    before_ns = clock.of_message_ns(START + 4 * SECOND, START)
    assert before_ns == START + 4 * SECOND
    at(5, by_s)  # what was received before is neither earlier than the last message, nor later than now
    assert before_ns <= clock.of_message_ns(START + 5 * SECOND, before_ns) <= START + 5 * SECOND
    at(8, by_s)
    assert clock.of_message_ns(time.time_ns() - SECOND, before_ns) == START + 7 * SECOND


def test_what_was_sent_again_keeps_its_place(at):
    """The middleware notes when each one came, and gives them in the order in which they were published."""
    clock, times = arrival.ArrivalClock(), [START]
    at(1)
    for received in (0, 9, 5, 20):
        times.append(clock.of_message_ns(START + received, times[-1]))
    assert times[1:] == [START, START + 9, START + 9, START + 20]


def test_simulated_time_may_advance_but_simulations_stay_in_order():
    times = iter([0, 100, 500, 0, 3, 2.9, 3])
    clock = arrival.ArrivalClock(lambda: round(next(times) * SECOND))
    said = [0, 100, 500, 500, 503, 502.9, 503]  # and jitter remains
    assert [clock.now_ns() for _ in said] == [each * SECOND for each in said]


def numbers(path, times_s):
    return write_bag(path, [("/number", START + each * SECOND, Int32(data=n)) for n, each in enumerate(times_s)])


class Taken(list):
    """A publisher that keeps what it gets."""

    def publish(self, data):
        self.append(int.from_bytes(data[4:8], "little"))


def played(path, rate=1.0):
    """Play it; return the numbers, and the gaps that were left out, s."""
    taken, gaps = Taken(), []
    with BagReader(path) as bag:
        (topic,) = bag.topics
        span = Span(bag.start_ns, bag.end_ns)
        player = Player(bag, {topic: taken}, [], span, rate=rate, on_gap=lambda *gap: gaps.append(gap))
        player.play()
    return taken, gaps


def test_a_long_gap_is_left_out_and_said_where_it_is(tmp_path):
    taken, gaps = played(numbers(tmp_path / "bag", [0, 1, 30 * 24 * 3600, 30 * 24 * 3600 + 1]), rate=10.0)
    assert taken == [0, 1, 2, 3]
    ((position_s, gap_s),) = gaps
    assert position_s >= 1.0  # where the player is when it has the next message
    assert position_s + gap_s == pytest.approx(30 * 24 * 3600)


def test_a_gap_that_is_played_soon_is_none(tmp_path):
    assert played(numbers(tmp_path / "bag", [0, round(2 * LONGEST_GAP_S)]), rate=1e4) == ([0, 1], [])


def test_messages_before_the_played_time_come_at_once_in_bag_order():
    class Back:
        """A bag in the order of arrival, whose clock was set back by an hour."""

        start_ns = START

        def messages(self, topics, start_ns, stop_ns):
            (topic,) = topics
            for number, time_ns in enumerate((START, START - HOUR, START - HOUR + 5 * SECOND, START + 1)):
                yield BagMessage(topic, time_ns, b"\0\1\0\0" + number.to_bytes(4, "little"))

    taken = Taken()
    Player(Back(), {"/number": taken}, [], Span(START, START + 2), rate=1.0).play()
    assert taken == [0, 1, 2, 3]
