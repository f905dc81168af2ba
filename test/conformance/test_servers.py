# SPDX-License-Identifier: Apache-2.0
"""Questions to each server about its operator and itself: what is the last word on cmd_vel, and does it go on?"""

import contextlib
import random
import signal
import socket
import time

import pytest
from flooder import flooding
from ros_session import repeating
from vanishing import kill
from vehicle_pair import STALL_S, ServerPair, assert_neutral_after, assert_nothing_moved, each_kind, pairs

WATCHED_S = 0.5
GARBAGE = random.Random(1).randbytes(1000)

kind = each_kind()


@pytest.fixture(scope="module")
def pair(kind, tmp_path_factory):
    pair = ServerPair(kind, tmp_path_factory.mktemp(kind.name))
    try:
        pair.start_server()
        yield pair
    finally:
        pair.close()


def test_an_operator_that_is_killed(pair):
    pair.drive()
    assert_neutral_after(pair.commands, pair.kill_operator())
    pair.drive()


def test_an_operator_that_stands_still(pair):
    pair.drive()
    pair.operator.send(signal.SIGSTOP)
    stopped_s = time.monotonic()
    try:
        assert_neutral_after(pair.commands, stopped_s)
        time.sleep(max(0.0, stopped_s + STALL_S - time.monotonic()))
    finally:
        pair.operator.send(signal.SIGCONT)
    pair.drive()


def test_a_server_that_stands_still_while_its_operator_dies(pair):
    pair.drive()
    pair.server.send(signal.SIGSTOP)
    try:
        time.sleep(STALL_S - pairs.COMMAND_TIMEOUT_S)
        pair.kill_operator()
        time.sleep(pairs.COMMAND_TIMEOUT_S)
    finally:
        resumed_s = time.monotonic()
        pair.server.send(signal.SIGCONT)
    assert_neutral_after(pair.commands, resumed_s)
    assert_nothing_moved(pair.commands, resumed_s)
    pair.drive()


def test_a_flood_of_garbage_delays_no_neutral_command(pair):
    """Of others, where operators call the server."""
    if not pair.is_called:
        return
    pair.drive()
    with contextlib.ExitStack() as stack:
        if pair.kind.is_stream:
            stack.enter_context(flooding(pair.port, GARBAGE, is_reading=False))
        else:
            other = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            stack.enter_context(repeating(lambda _: other.sendto(GARBAGE, ("127.0.0.1", pair.port)), 0.0001))
        time.sleep(WATCHED_S)
        assert_neutral_after(pair.commands, pair.kill_operator())
    pair.drive()


def test_a_server_that_is_killed(pair):
    pair.drive()
    kill(pair.server)
    pair.kill_operator()
    time.sleep(WATCHED_S)
    started_s = time.monotonic()
    pair.start_server()
    time.sleep(2 * WATCHED_S)
    assert_nothing_moved(pair.commands, started_s)
    pair.drive()


def test_a_server_that_is_deactivated(pair):
    pair.drive()
    pair.session.transition(pair.node, "deactivate")
    inactive_s = time.monotonic()
    assert_neutral_after(pair.commands, inactive_s - WATCHED_S)
    settled_s = time.monotonic()
    time.sleep(WATCHED_S)
    assert_nothing_moved(pair.commands, settled_s)
    pair.kill_operator()
    pair.session.transition(pair.node, "activate")
    pair.drive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end(pair, number):
    if not pair.server.is_running:
        pair.start_server()
    pair.drive()
    signalled_s = time.monotonic()
    status = pair.server.stop(number)
    assert status == 0, pair.server.output
    assert "Traceback" not in pair.server.output
    assert_neutral_after(pair.commands, signalled_s)


def test_a_port_that_is_taken(pair):
    """At last: the server waits for it, and is there as soon as it is free."""
    pair.end(pair.server)
    if not pair.is_called:
        return
    kind = socket.SOCK_STREAM if pair.kind.is_stream else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, pair.kind.is_stream)
        other.bind(("127.0.0.1", pair.port))
        if pair.kind.is_stream:
            other.listen()
        pair.start_server()
        pair.server.wait_for_line(f"127.0.0.1:{pair.port}: Address already in use")
    pair.drive()
    assert pair.server.count_lines("Address already in use") == 1
