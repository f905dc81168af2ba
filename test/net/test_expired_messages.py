# SPDX-License-Identifier: Apache-2.0
"""Messages with a time limit, on streams that stall: sent in time, or never. Without a socket."""

import math

import pytest
from fake_wire import PLENTY, FakeWire

from drone_bridge.net import tcp_connection
from drone_bridge.net.send_queue import StreamEntry
from drone_bridge.net.tcp_connection import StreamOptions, TcpConnection

GO, STEER, STOP = b"takeoff\n", b"v 1\n", b"v 0\n"


@pytest.fixture
def clock(monkeypatch):
    """Return the time, s, as a list."""
    now_s = [100.0]
    monkeypatch.setattr(tcp_connection, "elapsed_s", lambda: now_s[0])
    return now_s


@pytest.fixture
def wire():
    return FakeWire()


@pytest.fixture
def connection(wire):
    return TcpConnection(wire, StreamOptions())


def stalled(connection, wire, room=0, decided=lambda is_sent: None):
    """Queue a command, a request until 101 s, and another command."""
    wire.room = room
    connection.flush(STEER)
    connection.flush(GO, until_s=101.0, decided=decided)
    connection.flush(STOP)


def go_on(connection, wire):
    wire.room = PLENTY
    connection.flush()
    assert not connection.has_unsent
    assert connection.unsent.size_bytes == 0
    return wire.data


@pytest.mark.parametrize(("at_s", "data", "dropped"), [(100.9, STEER + GO + STOP, 0), (101.0, STEER + STOP, 1)])
def test_a_message_is_sent_before_its_time_limit_or_dropped(connection, wire, clock, at_s, data, dropped):
    decided = []
    stalled(connection, wire, decided=decided.append)
    clock[0] = at_s
    assert decided == []
    assert go_on(connection, wire) == data
    assert decided == [not dropped]
    assert [connection.take_dropped(), connection.take_dropped()] == [dropped, 0]


def test_a_begun_message_is_completed_after_its_time_limit(connection, wire, clock):
    stalled(connection, wire, room=len(STEER) + 3)
    clock[0] = 200.0
    assert go_on(connection, wire) == STEER + GO + STOP


def test_a_message_inside_another_is_kept_until_that_is_complete(connection, wire, clock):
    connection.flush(STEER[:2], rest=STEER[2:])
    wire.room = 0
    connection.flush(STEER[2:])
    connection.flush(GO, until_s=101.0)
    clock[0] = 200.0
    assert go_on(connection, wire) == STEER


def test_a_message_with_a_time_limit_is_dropped_when_the_connection_is_closed(connection, wire, clock):
    stalled(connection, wire)
    connection.has_left()
    assert not wire.is_shut, "the last data are not written yet"
    wire.room = PLENTY
    assert connection.has_left()
    assert (wire.data, wire.is_shut) == (STEER + STOP, True)


def test_last_words_follow_the_message_before_a_dropped_one(connection, wire, clock):
    entries = []
    connection.outlet.queue.on_write = entries.append
    wire.room = 0
    connection.flush(GO, until_s=101.0)
    clock[0] = 101.0
    go_on(connection, wire)
    assert entries == [StreamEntry(0, GO, False), StreamEntry(0, b"", False)]


def test_without_a_limit_nothing_is_dropped(connection, wire, clock):
    wire.room = 0
    connection.flush(GO, until_s=math.inf)
    clock[0] = 1e9
    assert go_on(connection, wire) == GO
