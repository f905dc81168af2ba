# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge and its vehicle as processes: commands after a stall or the vehicle's death.

The commands end before that is over: after that, only new commands may move the vehicle.
"""

import signal
import time

import pytest
from processes import TIMEOUT_S
from ros_session import wait_until
from vehicle_pair import COMMAND_TIMEOUT_S, BridgePair, assert_neutral, assert_nothing_moved, each_kind, shared

#: Most motion commands that may wait for a vehicle: two in each period at 20 Hz, for a second.
MOST_WAITING = 40

kind, pair = each_kind(), shared(BridgePair)
pytestmark = pytest.mark.by_mechanism("stream", "datagrams")


def test_a_killed_vehicle(pair):
    pair.drive()
    pair.emulator.send(signal.SIGKILL)
    pair.emulator.wait()
    pair.stop()
    pair.settle()
    started_s = time.monotonic()
    pair.start_emulator()
    pair.wait_until_connected()
    pair.watch()
    assert_nothing_moved(pair.commands, started_s)
    pair.drive()


def test_few_commands_wait_for_a_stopped_vehicle(pair):
    """Commands continue all the time. On a stream, a vehicle would execute all that waited when it continues."""
    if not pair.kind.is_stream or pair.commands.is_asked:
        return
    pair.drive()
    pair.emulator.send(signal.SIGSTOP)
    try:
        wait_until(pair.emulator.is_stopped, "the vehicle to stand still")
        stopped_s = time.monotonic()
        neutral_s = pair.commands.wait(True, stopped_s, TIMEOUT_S)
        assert neutral_s is not None, "no neutral command"
        moving = [each for each in pair.commands.since(stopped_s) if not each[1]]
        assert len(moving) <= MOST_WAITING
        pair.watch()
        assert_nothing_moved(pair.commands, neutral_s)
    finally:
        resumed_s = time.monotonic()
        pair.emulator.send(signal.SIGCONT)
    pair.works_after(resumed_s, TIMEOUT_S)


@pytest.mark.parametrize("who", ["vehicle", "bridge"])
def test_a_stopped_process(pair, who):
    """A bridge is not commanded when it is stopped, since a command in progress can't be cancelled."""
    pair.drive()
    process = pair.emulator
    if who == "bridge":
        process = pair.program
        pair.stop()
        assert_neutral(pair.commands)
    process.send(signal.SIGSTOP)
    try:
        wait_until(process.is_stopped, "the process to stand still")
        pair.command()
        pair.queue_commands()
        pair.stop()
        time.sleep(COMMAND_TIMEOUT_S)  # stopped for longer than the timeout of the last command
        pair.catch_up()
    finally:
        resumed_s = time.monotonic()
        process.send(signal.SIGCONT)
    if who == "bridge":
        pair.watch()  # longer in measure/, for DDS's retransmissions after 3 s
        assert_nothing_moved(pair.commands, resumed_s)
    assert_neutral(pair.commands)
    pair.drive()
