# SPDX-License-Identifier: Apache-2.0
"""Cancellation of each blocking operation."""

import socket
import threading

import pytest
from tcp_peer import LONG_S, NO_LEAKS, FixedBackoff, Task, assert_ends_when_cancelled

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import LinkCancelledError
from drone_bridge.net.tcp_port import TcpPort

pytestmark = NO_LEAKS


def test_connecting_can_be_cancelled(cancellation, connector, unresponsive_port):
    opening = Task(connector(unresponsive_port, pytest.fail).open)
    threading.Event().wait(0.05)  # entering connect is not observable
    assert_ends_when_cancelled(opening, cancellation)


def test_backing_off_can_be_cancelled(cancellation, connector, free_port):
    failed = threading.Event()
    opening = Task(connector(free_port, lambda *_: failed.set(), FixedBackoff(60)).open)
    assert failed.wait(LONG_S)
    assert_ends_when_cancelled(opening, cancellation)


def test_a_link_can_also_be_cancelled_alone(free_port, connector):
    link = connector(free_port, lambda *_: link.cancel(), FixedBackoff(60))
    with pytest.raises(LinkCancelledError):
        link.open()


def test_looking_up_a_name_can_be_cancelled(monkeypatch, cancellation, connector):
    asked, answered = threading.Event(), threading.Event()

    def getaddrinfo(*arguments, flags=0, **options):
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        asked.set()
        answered.wait(LONG_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    opening = Task(connector(1, pytest.fail, host="far.example").open)
    assert asked.wait(LONG_S)
    assert_ends_when_cancelled(opening, cancellation)
    answered.set()


def test_receiving_can_be_cancelled(cancellation, closing):
    port = closing(TcpPort("127.0.0.1", 0))
    receiving = Task(receive, port, cancellation)
    assert_ends_when_cancelled(receiving, cancellation)
    with socket.create_connection(("127.0.0.1", port.port)), pytest.raises(LinkCancelledError):
        receive(port, cancellation)


def test_operations_after_cancellation_end_at_once(cancellation, connector, peer_listener):
    cancellation.cancel()
    cancellation.cancel()
    assert cancellation.is_set
    assert cancellation.wait(LONG_S)
    with pytest.raises(LinkCancelledError):
        connector(peer_listener.getsockname()[1]).open()
