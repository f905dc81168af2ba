# SPDX-License-Identifier: Apache-2.0
"""Tests of each server and its operator: the last command on cmd_vel, and recovery.

A command counts by its time of publication, so that one in flight at the server's response is not judged.
"""

import contextlib
import random
import signal
import socket
import time

import pytest
from flooder import flooding
from geometry_msgs.msg import Twist
from processes import TIMEOUT_S
from ros_session import repeating, wait_until
from vanishing import kill
from vehicle_pair import (
    COMMAND_TIMEOUT_S,
    ServerPair,
    assert_neutral,
    assert_neutral_after,
    assert_nothing_moved,
    each_kind,
    shared,
)

from drone_bridge.kind import Side, load
from drone_bridge.net.connector import wait_readable

GARBAGE = random.Random(1).randbytes(1000)
#: Number of chunks before the operator is killed.
FLOODED_COUNT = 1000
#: One per second, for longer than the timeout of a robot's driver.
OPERATOR_LOST_REPORTS = 4
#: One per second, for longer than the time in which a restarted server begins with neutral.
ATTENDED_REPORTS = 5
#: Time for which an operator continues without a reader.
OPERATED_S = 1.5
#: Another host than the server's, to which a GUI sends navdata in any case.
OTHER_HOST = "127.0.0.2"
#: Time without a report after which reports have ended. They are sent each second or more often.
QUIET_S = 3.0

kind, pair = each_kind(with_server=True), shared(ServerPair)
BY_PROCESS = pytest.mark.by_mechanism("process")
BY_TRANSPORT = pytest.mark.by_mechanism("stream", "datagrams")


def assert_neutral_is_repeated(pair, times=2):
    """Assert that the neutral command is repeated."""
    for _ in range(times):
        assert pair.commands.wait(True, time.monotonic(), TIMEOUT_S), "no neutral command"


@pytest.mark.every_kind
def test_a_killed_operator(pair):
    pair.drive()
    assert_neutral_after(pair.commands, pair.stop())
    pair.drive()


@pytest.mark.every_kind
def test_a_server_on_hold(pair):
    """The operator continues all the time."""
    pair.drive()
    hold = f"{pair.node}/hold"
    assert pair.session.switch(hold, True).success
    neutral_s = pair.commands.wait(True, time.monotonic(), TIMEOUT_S)  # a command in progress was already published
    pair.program.wait_for_line("Commands on the operator's topics do not move the vehicle: it is held")
    assert_neutral_is_repeated(pair)
    assert_nothing_moved(pair.commands, neutral_s)
    assert pair.session.switch(hold, False).success
    pair.drive()


@BY_TRANSPORT
def test_a_stopped_operator(pair):
    pair.drive()
    pair.operator.send(signal.SIGSTOP)
    try:
        wait_until(pair.operator.is_stopped, "the operator to stand still")
        # A robot's driver is dropped after 2 s. Until then its silence puts the motors in safe mode, as in robotd.
        assert_neutral_after(pair.commands, time.monotonic())
        pair.watch(OPERATOR_LOST_REPORTS)
        assert not pair.commands.is_moving
    finally:
        pair.operator.send(signal.SIGCONT)
    pair.drive()


@BY_TRANSPORT
def test_a_server_that_is_stopped_while_its_operator_is_killed(pair):
    """Data that the operator sends meanwhile wait in the server's socket.

    The operator is silent when the server is stopped, since a command being passed to DDS can't be cancelled.
    """
    pair.drive()
    pair.operator.send(signal.SIGSTOP)
    try:
        wait_until(pair.operator.is_stopped, "the operator to stand still")
        assert_neutral_after(pair.commands, time.monotonic())
        pair.program.send(signal.SIGSTOP)
        wait_until(pair.program.is_stopped, "the server to stand still")
        pair.operator.send(signal.SIGCONT)
        time.sleep(OPERATED_S)
        pair.stop()
        time.sleep(COMMAND_TIMEOUT_S)  # stopped for longer than the timeout of the last command
    finally:
        resumed_s = time.monotonic()
        pair.program.send(signal.SIGCONT)
    assert_neutral_after(pair.commands, resumed_s)
    assert_neutral_is_repeated(pair)
    assert_nothing_moved(pair.commands, resumed_s)
    pair.drive()


@BY_TRANSPORT
def test_a_flood_of_garbage_delays_no_neutral_command(pair):
    """The flood comes from other peers, if operators connect to the server."""
    if not pair.port:
        return
    pair.drive()
    with contextlib.ExitStack() as stack:
        if pair.kind.is_stream:
            stack.enter_context(flooding(pair.port, GARBAGE))
        else:
            sent = []
            other = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

            def send(number):
                other.sendto(GARBAGE, ("127.0.0.1", pair.port))
                sent.append(number)

            stack.enter_context(repeating(send, 0.0001))
            wait_until(lambda: len(sent) > FLOODED_COUNT, "the flood")
        assert_neutral_after(pair.commands, pair.stop())
        assert_neutral_is_repeated(pair)
    pair.drive()


@BY_TRANSPORT
def test_reports_to_a_peer_end_when_it_falls_silent(pair):
    """The address of a datagram may be forged: its owner would get reports for ever."""
    if pair.kind.is_stream or not pair.port:
        return
    connection = pair.kind.connect(Side.OPERATOR)
    said = [connection.send(each.message) for each in load(pair.kind.conversation)() if each.side is Side.OPERATOR]
    pair.drive()
    pair.stop()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in pair.kind.ports]
        for peer, port in zip(peers, pair.kind.ports, strict=True):
            peer.bind((OTHER_HOST, pair.parameters[port.parameter] if port.side is Side.OPERATOR else 0))
        with repeating(lambda number: peers[0].sendto(said[number % len(said)], ("127.0.0.1", pair.port)), 0.05):
            assert wait_readable(peers, TIMEOUT_S) != [False] * len(peers), "no reports at first"
        until_s = time.monotonic() + TIMEOUT_S
        while any(wait_readable(peers, QUIET_S)):
            assert time.monotonic() < until_s, "the reports go on"
            for peer in peers:
                with contextlib.suppress(BlockingIOError):
                    while peer.recv(65536, socket.MSG_DONTWAIT):
                        pass
    pair.drive()


@BY_TRANSPORT
def test_a_killed_server(pair):
    pair.drive()
    kill(pair.program)
    pair.stop()
    started_s = time.monotonic()
    pair.start_program()
    # As its predecessor may have left the vehicle moving.
    assert_neutral_after(pair.commands, started_s)
    assert_neutral_is_repeated(pair)
    assert_nothing_moved(pair.commands, started_s)
    pair.drive()


@BY_TRANSPORT
def test_a_killed_server_beside_another_commander(pair):
    """The server that is started next does not interrupt the other commander."""
    pair.drive()
    kill(pair.program)
    pair.stop()
    publisher, twist = pair.session.publisher(Twist, f"/{pair.name}/cmd_vel"), Twist()
    twist.linear.x = 0.2
    with repeating(lambda _: publisher.publish(twist)):
        pair.start_program()
        pair.watch(ATTENDED_REPORTS)

        def has_fallen_silent():
            """Return whether it repeats no neutral any more, as it does for a minute beside nobody else."""
            return not any(is_neutral for _, is_neutral in pair.commands.since(time.monotonic() - QUIET_S))

        wait_until(has_fallen_silent, "the end of its neutral commands")  # once it has discovered the commander
    pair.drive()


@BY_TRANSPORT
def test_a_deactivated_server(pair):
    """The operator continues all the time, as far as possible."""
    pair.drive()
    pair.session.transition(pair.node, "deactivate")
    inactive_s = time.monotonic()
    assert_neutral(pair.commands)
    pair.watch()
    assert not pair.commands.is_moving
    assert_nothing_moved(pair.commands, inactive_s)
    pair.stop()
    pair.session.transition(pair.node, "activate")
    pair.drive()


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGTERM, marks=pytest.mark.every_kind),
        *(pytest.param(each, marks=BY_PROCESS) for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)),
    ],
)
def test_a_server_that_receives_a_signal(pair, number):
    if not pair.program.is_running:
        pair.start_program()
    pair.drive()
    status = pair.program.stop(number)
    ended_s = time.monotonic()
    assert status == 0, pair.program.output
    assert "Traceback" not in pair.program.output
    assert_neutral(pair.commands)
    assert_nothing_moved(pair.commands, ended_s)


@BY_TRANSPORT
def test_a_port_in_use(pair):
    """Last test: the server retries, and listens as soon as the port is free."""
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
        taken = f"127.0.0.1:{pair.port} is in use by"  # others have optional ports
        pair.program.wait_for_line(taken)
    pair.drive()
    assert pair.program.count_lines(taken) == 1
