# SPDX-License-Identifier: Apache-2.0
"""Questions to each server about its operator and itself: what is the last word on cmd_vel, and does it go on?"""

import contextlib
import random
import signal
import socket
import time

import pytest
from flooder import flooding
from processes import TIMEOUT_S
from ros_session import repeating
from std_srvs.srv import SetBool
from vanishing import kill
from vehicle_pair import (
    COMMAND_TIMEOUT_S,
    STALL_S,
    ServerPair,
    assert_neutral_after,
    assert_nothing_moved,
    each_kind,
    shared,
)

WATCHED_S = 0.5
GARBAGE = random.Random(1).randbytes(1000)

kind, pair = each_kind(), shared(ServerPair)


def test_an_operator_that_is_killed(pair):
    pair.drive()
    assert_neutral_after(pair.commands, pair.stop())
    pair.drive()


def test_a_server_on_hold(pair):
    """The operator goes on all the while."""
    pair.drive()
    hold = f"/{pair.name}/{pair.name}/hold"
    assert pair.session.call(SetBool, hold, SetBool.Request(data=True)).success
    assert_neutral_after(pair.commands, time.monotonic())
    held_s = time.monotonic()
    pair.program.wait_for_line("Commands on the operator's topics do not move the vehicle: it is held")
    for _ in range(2):  # it is repeated
        assert pair.commands.wait(True, time.monotonic(), TIMEOUT_S)
    assert_nothing_moved(pair.commands, held_s)
    assert pair.session.call(SetBool, hold, SetBool.Request(data=False)).success
    pair.drive()


def test_an_operator_that_stands_still(pair):
    pair.drive()
    pair.operator.send(signal.SIGSTOP)
    stopped_s = time.monotonic()
    try:
        assert_neutral_after(pair.commands, stopped_s)
        # A robot's driver is dropped after 2 s. Until then its silence puts the motors in safe mode, as in robotd.
        time.sleep(max(0.0, stopped_s + STALL_S + 1.0 - time.monotonic()))
    finally:
        pair.operator.send(signal.SIGCONT)
    pair.drive()


def test_a_server_that_stands_still_while_its_operator_dies(pair):
    pair.drive()
    pair.program.send(signal.SIGSTOP)
    try:
        time.sleep(STALL_S - COMMAND_TIMEOUT_S)
        pair.stop()
        time.sleep(COMMAND_TIMEOUT_S)
    finally:
        resumed_s = time.monotonic()
        pair.program.send(signal.SIGCONT)
    assert_neutral_after(pair.commands, resumed_s)
    assert_nothing_moved(pair.commands, resumed_s)
    pair.drive()


def test_a_flood_of_garbage_delays_no_neutral_command(pair):
    """Of others, where operators call the server."""
    if not pair.port:
        return
    pair.drive()
    with contextlib.ExitStack() as stack:
        if pair.kind.is_stream:
            stack.enter_context(flooding(pair.port, GARBAGE))
        else:
            other = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            stack.enter_context(repeating(lambda _: other.sendto(GARBAGE, ("127.0.0.1", pair.port)), 0.0001))
        time.sleep(WATCHED_S)
        assert_neutral_after(pair.commands, pair.stop())
    pair.drive()


def test_a_server_that_is_killed(pair):
    pair.drive()
    kill(pair.program)
    pair.stop()
    time.sleep(WATCHED_S)
    started_s = time.monotonic()
    pair.start_program()
    time.sleep(2 * WATCHED_S)
    assert_nothing_moved(pair.commands, started_s)
    pair.drive()


def test_a_server_that_is_deactivated(pair):
    pair.drive()
    asked_s = time.monotonic()
    pair.session.transition(f"/{pair.name}/{pair.name}", "deactivate")
    assert_neutral_after(pair.commands, asked_s)
    settled_s = time.monotonic()
    time.sleep(WATCHED_S)
    assert_nothing_moved(pair.commands, settled_s)
    pair.stop()
    pair.session.transition(f"/{pair.name}/{pair.name}", "activate")
    pair.drive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end(pair, number):
    if not pair.program.is_running:
        pair.start_program()
    pair.drive()
    signalled_s = time.monotonic()
    status = pair.program.stop(number)
    assert status == 0, pair.program.output
    assert "Traceback" not in pair.program.output
    assert_neutral_after(pair.commands, signalled_s)


def test_a_port_that_is_taken(pair):
    """At last: the server waits for it, and is there as soon as it is free."""
    pair.program.end()
    if not pair.port:
        return
    kind = socket.SOCK_STREAM if pair.kind.is_stream else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, pair.kind.is_stream)
        other.bind(("127.0.0.1", pair.port))
        if pair.kind.is_stream:
            other.listen()
        pair.start_program()
        taken = f"127.0.0.1:{pair.port}: Address already in use"  # others may have ports that it can do without
        pair.program.wait_for_line(taken)
    pair.drive()
    assert pair.program.count_lines(taken) == 1
