# SPDX-License-Identifier: Apache-2.0
"""Cancellation, wherever a thread may be waiting."""

import contextlib
import socket
import threading

import pytest
from tcp_peer import (
    LONG_S,
    MEBIBYTE,
    NO_LEAKS,
    FixedBackoff,
    Task,
    assert_ends_when_cancelled,
    connect,
    connector,
    receive,
)

from drone_bridge.net.connector import LinkCancelledError
from drone_bridge.net.tcp import TcpConnector

pytestmark = NO_LEAKS


def test_connecting_can_be_cancelled(cancellation, unresponsive_port):
    opening = Task(TcpConnector("127.0.0.1", unresponsive_port, cancellation, pytest.fail).open)
    threading.Event().wait(0.05)  # whether it is in connect by now can't be seen from outside
    assert_ends_when_cancelled(opening, cancellation)


def test_backing_off_can_be_cancelled(cancellation, free_port):
    failed = threading.Event()
    link = TcpConnector("127.0.0.1", free_port, cancellation, lambda *_: failed.set(), FixedBackoff(60))
    opening = Task(link.open)
    assert failed.wait(LONG_S)
    assert_ends_when_cancelled(opening, cancellation)


def test_waiting_to_connect_again_can_be_cancelled(cancellation, peer_listener):
    link = connector(peer_listener, cancellation, backoff=FixedBackoff(60))
    link.open().close()
    assert_ends_when_cancelled(Task(link.open), cancellation)


def test_looking_up_a_name_can_be_cancelled(monkeypatch, cancellation):
    asked, answered = threading.Event(), threading.Event()

    def getaddrinfo(*arguments, flags=0, **options):
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        asked.set()
        answered.wait(LONG_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    opening = Task(TcpConnector("far.example", 1, cancellation, pytest.fail).open)
    assert asked.wait(LONG_S)
    assert_ends_when_cancelled(opening, cancellation)
    answered.set()


def test_listening_can_be_cancelled(cancellation, listener):
    assert_ends_when_cancelled(Task(listener.open), cancellation)


def test_refusing_others_can_be_cancelled(cancellation, listener):
    with connect(listener.port):
        stream = listener.open()
        cancellation.cancel()
        Task(listener.close).result()  # waits for the thread that refuses
        stream.close()


def test_receiving_can_be_cancelled(cancellation, connected):
    assert_ends_when_cancelled(Task(receive, connected[0]), cancellation)


def test_receiving_can_be_cancelled_while_data_streams_in(cancellation, connected):
    stream, peer = connected

    def keep_sending():
        with contextlib.suppress(ConnectionError):
            while True:
                peer.sendall(bytes(100_000))

    def keep_receiving():
        while True:
            receive(stream)

    sending, receiving = Task(keep_sending), Task(keep_receiving)
    assert_ends_when_cancelled(receiving, cancellation)
    stream.close()
    sending.result()


def test_sending_to_a_peer_that_does_not_read_can_be_cancelled(cancellation, connected):
    stream, _ = connected
    sending = Task(stream.send_all, bytes(16 * MEBIBYTE))
    assert_ends_when_cancelled(sending, cancellation)


def test_operations_after_cancellation_end_at_once(cancellation, connected, listener, peer_listener):
    cancellation.cancel()
    cancellation.cancel()
    assert cancellation.is_set
    assert cancellation.wait(LONG_S)
    peer_listener.settimeout(0.05)
    for waiting in (
        listener.open,
        connector(peer_listener, cancellation).open,
        lambda: receive(connected[0]),
        lambda: connected[0].send_all(b"x"),
    ):
        with pytest.raises(LinkCancelledError):
            waiting()


def test_waiting_without_cancellation_ends_in_time(cancellation):
    assert not cancellation.wait(0.05)


def test_many_connections_leave_nothing_behind(cancellation, listener):
    for _ in range(30):
        link = TcpConnector("127.0.0.1", listener.port, cancellation, pytest.fail)
        outgoing = link.open()
        incoming = listener.open()
        outgoing.send_all(b"x")
        assert receive(incoming) == b"x"
        outgoing.close()
        incoming.close()
