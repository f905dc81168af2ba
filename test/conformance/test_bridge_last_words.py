# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge that is killed or stopped without a launch file: its child process stops the vehicle."""

import os
import signal
import time

import alone
import pytest
from processes import TIMEOUT_S, has_ended
from ros_session import wait_until
from subjects import SILENT_IN_STALLS
from vehicle_pair import BridgePair, assert_nothing_moved, each_kind, shared

from drone_bridge.kind import Side

kind, pair = each_kind(), shared(BridgePair)
BY_PROCESS = pytest.mark.by_mechanism("process")
#: Time for which a bridge is suspended whose child says nothing.
SUSPENDED_S = 2.0
#: Kinds whose vehicle serves one bridge, until its connection has ended.
EXCLUSIVE = ("testbed",)


def assert_stopped(pair, since_s):
    """Assert that the vehicle gets neutral after a time, by whole messages, and nothing that moves it after that.

    Return the time of the first one.
    """
    neutral_s = pair.commands.wait(True, since_s, TIMEOUT_S)
    assert neutral_s is not None, pair.program.output
    pair.catch_up()
    assert_nothing_moved(pair.commands, neutral_s)
    assert not pair.commands.malformed
    return neutral_s


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, marks=pytest.mark.every_kind),
        *(pytest.param(each, marks=BY_PROCESS) for each in (signal.SIGABRT, signal.SIGSEGV, signal.SIGALRM)),
    ],
)
def test_a_commanded_bridge_that_is_killed(pair, number):
    pair.drive()
    killed_s = time.monotonic()
    pair.program.send(number)
    # The watchdog's dump on SIGALRM reads the frames of all threads, which may crash unless they hang as they do then.
    crashes = (-signal.SIGSEGV,) if number == signal.SIGALRM else ()
    assert pair.program.wait() in (-number, *crashes)
    neutral_s = assert_stopped(pair, killed_s)
    alone.say(f"{pair.kind.name}: neutral {neutral_s - killed_s:.3f} s after {number.name}")


@pytest.mark.by_mechanism("stream", "numbered datagrams")
def test_a_killed_bridge_that_is_restarted_at_once(pair):
    """The new one is followed: no old number locks it out, and its port is free."""
    pair.drive()
    pair.kill()
    started_s = time.monotonic()
    pair.start_program()
    pair.works_after(started_s, TIMEOUT_S)


@pytest.mark.by_mechanism("stream", "datagrams")
def test_a_killed_bridge_of_a_neutral_vehicle(pair):
    pair.drive()
    pair.stop()
    pair.settle()
    child = pair.child
    pair.program.send(signal.SIGSTOP)
    wait_until(pair.program.is_stopped, "the bridge to send no more")
    pair.catch_up()
    killed_s = time.monotonic()
    pair.kill()
    wait_until(lambda: has_ended(child), "the end of its child")
    pair.catch_up()
    assert_nothing_moved(pair.commands, killed_s)


@pytest.mark.by_mechanism("stream", "datagrams")
def test_a_bridge_that_is_suspended_and_continued_and_then_killed(pair):
    """Its vehicle is stopped meanwhile, then follows new commands, and is stopped again."""
    pair.drive()
    suspended_s = time.monotonic()
    pair.program.send(signal.SIGSTOP)
    try:
        if pair.kind.name in SILENT_IN_STALLS:
            time.sleep(SUSPENDED_S)
        else:
            assert_stopped(pair, suspended_s)
    finally:
        continued_s = time.monotonic()
        pair.program.send(signal.SIGCONT)
    pair.works_after(continued_s, TIMEOUT_S)
    assert not pair.commands.malformed
    wait_until(lambda: pair.commands.is_moving, "a moving command")  # a drone in cruise is also braked
    killed_s = time.monotonic()
    pair.kill()
    assert_stopped(pair, killed_s)


@pytest.mark.by_mechanism("numbered datagrams")
def test_another_bridge_takes_over_from_a_suspended_one(pair):
    """For bridges that can work side by side: of other names, neither listens, and none has the vehicle for itself."""
    if any(port.side is Side.OPERATOR for port in pair.kind.ports) or pair.kind.name in EXCLUSIVE:
        return
    pair.drive()
    first = pair.program
    first.send(signal.SIGSTOP)
    try:
        time.sleep(SUSPENDED_S)
        started_s = time.monotonic()
        pair.start_program(["-r", "__node:=another"])
        word_s = pair.first_word_after(started_s)  # a robot may be told to move with it, and then nothing new
        followed_s = pair.works_after(started_s, TIMEOUT_S) - word_s
        alone.say(  # within 1 s on an idle machine, with the middleware's discovery of the commander
            f"{pair.kind.name}: a bridge is followed {followed_s:.2f} s after its first word, beside a suspended one"
        )
    finally:
        first.send(signal.SIGKILL)
        first.wait()
        pair.kill()  # it has another name than that which `pair.watch` waits for
    assert not pair.commands.malformed


@BY_PROCESS
def test_a_bridge_whose_child_is_killed(pair):
    """It works on, and another child takes over."""
    pair.drive()
    os.kill(pair.child, signal.SIGKILL)
    pair.program.wait_for_line("The log writer had ended, and was started again")
    pair.watch()  # by then it has the link's file
    wait_until(lambda: pair.commands.is_moving, "a moving command")  # a drone in cruise is also braked
    killed_s = time.monotonic()
    pair.kill()
    assert_stopped(pair, killed_s)
