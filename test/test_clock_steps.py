# SPDX-License-Identifier: Apache-2.0
"""Bags whose recorder's clock was set: the order of arrival, and what info and play say. Without a ROS graph."""

import pytest
from rosbags.rosbag2 import Reader
from std_msgs.msg import Int32
from written_bags import write_bag

from drone_bridge.tools.bags.bag import LONGEST_GAP_S, Bag, BagMessage
from drone_bridge.tools.cli import main
from drone_bridge.tools.playing.player import Player, Span
from drone_bridge.tools.recording.arrival import CLOCK_NOTE, MAX_STEPS, ArrivalClock, ArrivalTimes
from drone_bridge.tools.recording.bag import Bag as WrittenBag
from drone_bridge.tools.recording.bag import Topic
from drone_bridge.tools.recording.definitions import find_definition

SECOND = 10**9
HOUR = 3600 * SECOND
START = 1_700_000_000 * SECOND
FORWARD = "set forward by 3600.0 s after 5.0 s"


class Clocks:
    """The machine's clock, which somebody sets, and a steady one."""

    def __init__(self, now_ns=START):
        self.now_ns, self.steady_ns = now_ns, 77
        self.arrival = ArrivalClock(self.now_ns, self.steady_ns)

    def wait(self, seconds):
        self.now_ns += round(seconds * SECOND)
        self.steady_ns += round(seconds * SECOND)
        return self.arrival.look(self.now_ns, self.steady_ns)

    def set(self, by_ns):
        self.now_ns += by_ns
        return self.arrival.look(self.now_ns, self.steady_ns)


@pytest.mark.parametrize("by_ns", [HOUR, -HOUR, -START, 54 * 365 * 24 * HOUR])
def test_times_go_on_where_the_clock_is_set(by_ns):
    clocks = Clocks()
    assert clocks.wait(5) == ""
    direction = "forward" if by_ns > 0 else "back"
    assert f"set {direction} by {abs(by_ns) / SECOND:.1f} s after 5.0 s" in clocks.set(by_ns)
    assert clocks.wait(3) == ""
    assert clocks.arrival.of(clocks.now_ns) == START + 8 * SECOND
    assert clocks.arrival.steps == [(5 * SECOND, by_ns)]


def test_a_clock_that_is_slewed_is_followed():
    clocks = Clocks()
    for _ in range(1000):
        clocks.wait(0.05)
        assert clocks.set(SECOND // 100) == ""
    assert clocks.arrival.of(clocks.now_ns) == clocks.now_ns == START + 60 * SECOND


def test_a_clock_that_is_set_again_and_again_is_named_so_often_at_most():
    clocks = Clocks()
    said = [clocks.set(HOUR if number % 2 else -HOUR) for number in range(2 * MAX_STEPS)]
    assert sum(map(bool, said)) == MAX_STEPS
    assert clocks.arrival.of(clocks.now_ns) == START


def test_simulated_time_may_go_forward_but_a_new_simulation_follows_the_one_before():
    clock = ArrivalClock(0, None)
    assert clock.look(100 * SECOND, None) == ""
    assert clock.look(500 * SECOND, None) == ""
    assert clock.of(500 * SECOND) == 500 * SECOND
    assert "set back by 500.0 s after 400.0 s" in clock.look(0, None)
    assert clock.of(3 * SECOND) == 503 * SECOND


def test_what_came_just_before_the_clock_was_set_is_neither_late_nor_early():
    clocks = Clocks()
    times = ArrivalTimes(clocks.arrival)
    assert times.in_order_ns(clocks.now_ns, clocks.now_ns) == START
    clocks.wait(1)
    before_ns = clocks.now_ns
    clocks.set(-HOUR)
    assert times.in_order_ns(before_ns, clocks.now_ns) == START + SECOND
    clocks.wait(1)
    before_ns = clocks.now_ns
    clocks.set(HOUR)
    assert times.in_order_ns(before_ns, clocks.now_ns) == START + SECOND
    assert times.in_order_ns(clocks.now_ns, clocks.now_ns) == START + 2 * SECOND


def test_what_was_sent_again_keeps_its_place():
    """The middleware notes when each one came, and gives them in the order in which they were published."""
    clocks = Clocks()
    times = ArrivalTimes(clocks.arrival)
    clocks.wait(1)
    received = (START, START + 9, START + 5, START + 20)
    assert [times.in_order_ns(each, clocks.now_ns) for each in received] == [START, START + 9, START + 9, START + 20]


def test_the_bag_notes_the_steps_and_info_names_them(tmp_path, capsys):
    clocks = Clocks()
    clocks.wait(5)
    clocks.set(HOUR)
    bag = WrittenBag(tmp_path / "flight")
    bag.notes[CLOCK_NOTE] = clocks.arrival.describe_steps()
    topic = Topic("/text", find_definition("std_msgs/msg/Int32"))
    bag.write(topic, clocks.arrival.of(clocks.now_ns), 0, b"\0\1\0\0\1\0\0\0")
    bag.close()
    with Reader(tmp_path / "flight") as reader:
        assert reader.storage.metadata.custom == {"clock": FORWARD}
    assert main(["info", str(tmp_path / "flight")]) == 0
    assert f"The recorder's clock was {FORWARD}; the times here go on as if it were not." in capsys.readouterr().out


def numbers(path, times_s):
    return write_bag(path, [("/number", START + each * SECOND, Int32(data=n)) for n, each in enumerate(times_s)])


def test_info_names_a_gap_of_all_topics(tmp_path, capsys):
    assert main(["info", str(numbers(tmp_path / "bag", [0, 1, 3601, 3602]))]) == 0
    assert "No topic has a message for 3600.0 s from 1.0 s on: nothing came, or the" in capsys.readouterr().out
    assert main(["info", str(numbers(tmp_path / "short", [0, 1, 61, 62]))]) == 0
    assert "No topic has" not in capsys.readouterr().out


def test_info_names_times_that_go_back_in_bags_of_other_recorders(tmp_path, capsys):
    """An hour of the first flight, and the second one after the clock was set back by half an hour."""
    path = tmp_path / "flight"
    bag, topic = WrittenBag(path), Topic("/text", find_definition("std_msgs/msg/Int32"))
    for second in (*range(0, 3600, 60), *range(1800, 5400, 60)):
        bag.write(topic, START + second * SECOND, 0, b"\0\1\0\0\1\0\0\0")
        bag.flush()
    bag.close()
    assert main(["info", str(path)]) == 0
    sentence = "The recorder's clock was set back by 1740.0 s, and what came before and after that is mixed."
    assert sentence in capsys.readouterr().out
    with Bag(numbers(tmp_path / "whole", range(100))) as whole:
        assert not whole.clock_steps


class Taken(list):
    """A publisher that keeps what it gets."""

    def publish(self, data):
        self.append(int.from_bytes(data[4:8], "little"))


def played(path, rate=1.0):
    """Play it; return the numbers, and the gaps that were left out, s."""
    taken, gaps = Taken(), []
    with Bag(path) as bag:
        (topic,) = bag.topics
        span = Span(bag.start_ns, bag.end_ns)
        player = Player(bag, {topic: taken}, [], span, rate=rate, on_gap=lambda *gap: gaps.append(gap))
        player.play(loop=False)
    return taken, gaps


def test_a_long_gap_is_left_out_and_said_where_it_is(tmp_path):
    taken, gaps = played(numbers(tmp_path / "bag", [0, 1, 30 * 24 * 3600, 30 * 24 * 3600 + 1]), rate=10.0)
    assert taken == [0, 1, 2, 3]
    ((position_s, gap_s),) = gaps
    assert position_s >= 1.0  # where the player is when it has the next message
    assert position_s + gap_s == pytest.approx(30 * 24 * 3600)


def test_a_gap_that_is_played_soon_is_none(tmp_path):
    assert played(numbers(tmp_path / "bag", [0, round(2 * LONGEST_GAP_S)]), rate=1e4) == ([0, 1], [])


def test_what_is_before_the_time_that_is_played_comes_at_once_in_the_bags_order():
    class Back:
        """A bag in the order of arrival, whose clock was set back by an hour."""

        start_ns = START

        def messages(self, topics, start_ns, stop_ns):
            (topic,) = topics
            for number, time_ns in enumerate((START, START - HOUR, START - HOUR + 5 * SECOND, START + 1)):
                yield BagMessage(topic, time_ns, b"\0\1\0\0" + number.to_bytes(4, "little"))

    taken = Taken()
    Player(Back(), {"/number": taken}, [], Span(START, START + 2), rate=1.0).play(loop=False)
    assert taken == [0, 1, 2, 3]
