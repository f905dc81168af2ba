# SPDX-License-Identifier: Apache-2.0
"""Fixtures for both ends of TCP links. No socket or thread may outlive its test."""

import contextlib
import os
import select
import socket
import threading

import pytest
from tcp_peer import LONG_S

from drone_bridge.net.tcp_peer import TcpPeer


def open_sockets():
    sockets = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                sockets.add(int(name))
    return sockets


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    threads, sockets = set(threading.enumerate()), open_sockets()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(LONG_S)
    assert set(threading.enumerate()) <= threads
    assert open_sockets() <= sockets


@pytest.fixture
def peer_listener():
    """Listening peer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG_S)
        yield server


@pytest.fixture
def connector(cancellation, closing):
    """Return a factory: connector(port) returns a link to a peer, ended by the test's cancellation."""

    def made(port, on_failure=lambda sentence, delay_s: None, backoff=None, host="127.0.0.1"):
        link = closing(TcpPeer(host, port, on_failure, cancellation=cancellation))
        link.backoff = backoff or link.backoff
        return link

    return made


@pytest.fixture
def unresponsive_port():
    """Return a port that does not respond: its backlog is full."""
    with contextlib.ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        while True:
            client = sockets.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
            if not select.select([], [client], [], 0.2)[1]:
                break
        yield server.getsockname()[1]
