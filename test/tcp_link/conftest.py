# SPDX-License-Identifier: Apache-2.0
"""Both ends of TCP links; nothing of a test may be left behind."""

import contextlib
import os
import select
import socket
import threading

import pytest
from tcp_peer import LONG_S, connector

from drone_bridge.net.tcp_listener import TcpListener


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
def listener(cancellation):
    """A listener of ours; the peers that it refused are in `listener.refused`."""
    refused = []
    listener = TcpListener("127.0.0.1", 0, cancellation, refused.append)
    listener.refused = refused
    yield listener
    cancellation.cancel()
    listener.close()


@pytest.fixture
def peer_listener():
    """A peer that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG_S)
        yield server


@pytest.fixture
def connected(peer_listener, cancellation):
    """A stream of ours and the peer's socket."""
    stream = connector(peer_listener, cancellation).open()
    peer = peer_listener.accept()[0]
    peer.settimeout(LONG_S)
    yield stream, peer
    peer.close()
    stream.close()


@pytest.fixture
def unresponsive_port():
    """A port that does not answer: its queue is full, and nobody accepts."""
    with contextlib.ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        while True:
            client = sockets.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
            if not select.select([], [client], [], 0.2)[1]:
                break
        yield server.getsockname()[1]
