# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge and its vehicle as processes: commands after a stall or the vehicle's death.

The commands end before that is over: after that, only new commands may move the vehicle.
"""

import signal
import time

import pytest
from ros_session import wait_until
from vehicle_pair import (
    COMMAND_TIMEOUT_S,
    BridgePair,
    assert_neutral,
    assert_nothing_moved,
    each_kind,
    shared,
)

kind, pair = each_kind(), shared(BridgePair)


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
        pair.watch()  # longer in the campaign, for DDS's retransmissions after 3 s
        assert_nothing_moved(pair.commands, resumed_s)
    assert_neutral(pair.commands)
    pair.drive()
