# SPDX-License-Identifier: Apache-2.0
"""TCP peers whose machine vanishes, without a FIN or RST."""

import select
import socket

import pytest
from tcp_peer import LONG_S, NO_LEAKS, Task
from vanishing import vanish

from drone_bridge.net import tcp as tcp_options
from drone_bridge.net.connector import LinkError
from drone_bridge.net.tcp_connection import StreamOptions, TcpConnection

pytestmark = NO_LEAKS


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Set the shortest timeout that Linux supports."""
    for name in ("KEEPALIVE_IDLE_S", "KEEPALIVE_INTERVAL_S", "KEEPALIVE_PROBES"):
        monkeypatch.setattr(tcp_options, name, 1)


def read_to_the_end(connection):
    while select.select([connection], [], [], 2 * LONG_S)[0]:
        connection.read()


def test_a_vanished_peer_is_detected_with_and_without_unacknowledged_data(peer_listener, closing):
    """All cases run concurrently, since they take seconds."""
    idle, owing = (
        closing(
            TcpConnection(
                socket.create_connection(peer_listener.getsockname()), StreamOptions(expects_acknowledgements=it)
            )
        )
        for it in (False, True)
    )
    for _ in range(2):
        vanish(closing(peer_listener.accept()[0]))
    owing.flush(b"an answer")
    for each in [Task(read_to_the_end, connection) for connection in (idle, owing)]:
        with pytest.raises(LinkError, match="lost"):
            each.result(2 * LONG_S)
