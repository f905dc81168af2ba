# SPDX-License-Identifier: Apache-2.0
"""Detection of a process's stalls from any thread, without mistaking a busy thread for one."""

import math
import threading
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest
from patience import TIMEOUT_S
from plain_node import PlainNode

from drone_bridge.ros.node import protocol_node
from drone_bridge.ros.node.stall_watch import LATE_TURN_S, SETTLING_S, STALL_S, StaleStreamFilter, StallWatch, elapsed_s
from drone_bridge.session.session import AFTER_STALLS


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def test_a_process_that_never_stood_still_is_not_settling(clock):
    watch = StallWatch(clock)
    for _ in range(20):
        clock.now_s += 0.9 * STALL_S
        assert not watch.is_settling
    assert watch.running_s() == float("inf")


def test_after_a_gap_it_settles_for_a_while(clock):
    watch = StallWatch(clock)
    clock.now_s += STALL_S + 0.01
    assert watch.is_settling
    clock.now_s += 0.9 * SETTLING_S
    assert watch.is_settling
    clock.now_s += 0.2 * SETTLING_S
    assert not watch.is_settling
    assert watch.running_s() == pytest.approx(1.1 * SETTLING_S)


def test_a_request_right_after_a_stall_is_refused_and_counted(clock, monkeypatch):
    monkeypatch.setattr(protocol_node, "PROCESS", StallWatch(clock))
    node = PlainNode()
    node.takes_commands = partial(protocol_node.ProtocolNode.takes_commands, node)
    check_age = partial(protocol_node.ProtocolNode.check_age, node, "takeoff")
    check_age()
    clock.now_s += STALL_S + 0.01
    with pytest.raises(ValueError, match="takeoff"):
        check_age()
    assert node.report.counts == {AFTER_STALLS: 1}
    for _ in range(2):
        clock.now_s += 0.6 * SETTLING_S
        protocol_node.PROCESS.running_s()
    check_age()


def test_a_request_after_a_stall_may_have_waited_since_before_it(clock):
    watch = StallWatch(clock)
    assert watch.waited_s() == 0.0
    clock.now_s += 2.0
    assert watch.waited_s() == pytest.approx(2.0)
    clock.now_s += 1.0  # the next stall follows immediately
    assert watch.waited_s() == pytest.approx(3.0)
    clock.now_s += 0.2
    assert watch.waited_s() == pytest.approx(3.2)
    clock.now_s += 0.2
    assert watch.waited_s() == 0.0
    for _ in range(round(LATE_TURN_S / 0.2) + 1):
        clock.now_s += 0.2
        watch.running_s()
    clock.now_s += 0.5
    assert watch.waited_s() == pytest.approx(0.5)


def test_thread_delayed_while_reading_the_time_is_no_stall():
    times_s = {"delayed": 100.0, "other": 100.0 + STALL_S}

    def read():
        name = threading.current_thread().name
        if name == "delayed":
            other.start()
            other.join(0.5)  # time in which it may overtake
        return times_s.get(name, 100.0)

    watch = StallWatch(read)
    other = threading.Thread(target=watch.running_s, name="other")
    delayed = threading.Thread(target=watch.running_s, name="delayed")
    delayed.start()
    delayed.join()
    other.join()
    times_s[threading.current_thread().name] = 100.0 + STALL_S + 0.1
    assert watch.running_s() == math.inf


@pytest.mark.parametrize(("late_s", "settles"), [(1.0, True), (LATE_TURN_S + 0.1, False)])
def test_an_executor_that_gets_its_turn_late_settles_from_then_on(clock, late_s, settles):
    """As on a busy machine. A first call long after a stall does not report it."""
    watch = StallWatch(clock)
    clock.now_s += 5.0
    for _ in range(round(late_s / 0.1)):  # the ticking thread
        watch.running_s()
        clock.now_s += 0.1
    assert watch.is_settling is settles
    for _ in range(2):
        clock.now_s += 0.6 * SETTLING_S
        watch.running_s()
    assert not watch.is_settling


def test_nobody_sees_the_tick_after_a_stall_without_the_stall(clock):
    """No lock is held meanwhile: a concurrent call does not count the process as resumed."""
    seen = []

    class Ticks(dict):
        def __setitem__(self, thread, now_s):
            super().__setitem__(thread, now_s)
            seen.append(now_s - watch._resumed_s)  # like another thread

    watch = StallWatch(clock)
    watch._ticks = Ticks(watch._ticks)
    clock.now_s += 5.0
    assert watch.running_s() == 0.0
    assert seen == [0.0]


def test_it_ticks_by_itself_while_nobody_asks():
    ticks = threading.Semaphore(0)

    def clock():
        ticks.release()
        return 0.0

    StallWatch(clock).start()
    for _ in range(5):
        assert ticks.acquire(timeout=TIMEOUT_S)


class Watch:
    """A process that has been running for this long since its last stall."""

    clock = staticmethod(elapsed_s)

    def __init__(self):
        self.ran_s = math.inf

    def running_s(self):
        return self.ran_s


@pytest.fixture
def watch():
    return Watch()


def test_right_after_a_stall_no_command_is_taken(watch):
    settling = StaleStreamFilter(watch)
    assert settling.refusal() is None
    watch.ran_s = 0.5 * SETTLING_S
    for _ in range(3):
        assert "0.15 s" in settling.refusal()
    watch.ran_s = 10.0 * SETTLING_S
    assert settling.refusal() is None


def test_a_stream_settles_from_its_own_first_look_after_a_stall(clock):
    """A thread that is scheduled late takes a message that waited, and perhaps one that arrived late."""
    watch = StallWatch(clock)
    settling = StaleStreamFilter(watch)

    def run(seconds):
        for _ in range(round(seconds / 0.1)):
            clock.now_s += 0.1
            watch.running_s()

    run(0.5)
    assert settling.refusal() is None
    for _ in range(2):
        clock.now_s += 2.0
        run(SETTLING_S + 0.2)
        assert settling.refusal()
        run(SETTLING_S - 0.1)
        assert settling.refusal()
        run(0.2)
        assert settling.refusal() is None
    clock.now_s += 2.0
    run(LATE_TURN_S + 0.2)  # nothing waits for as long
    assert settling.refusal() is None


def test_a_command_of_an_operator_from_before_a_stall_is_not_published(monkeypatch):
    published = []
    node = SimpleNamespace(_is_publishing=True, report=SimpleNamespace(counts=Counter()))
    monkeypatch.setattr(protocol_node, "elapsed_s", lambda: 10.0)
    for message, decided_s in (("fresh", 9.8), ("stale", 9.6), ("report", None)):
        publisher = SimpleNamespace(publish=published.append)
        protocol_node.ProtocolNode.publish(node, publisher, message, decided_s)
    assert published == ["fresh", "report"]
    assert node.report.counts == {AFTER_STALLS: 1}
