# SPDX-License-Identifier: Apache-2.0
"""Links of a robot in one class: how long a stream waits for the other end."""

import socket

import pytest
from own_robots import Pioneer

from drone_bridge.net.tcp import vanished_after_s
from drone_bridge.robot_class.links import client_link, robots_link


def user_timeout_s(link):
    (connection,) = link._by_peer.values()
    return connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such timeout")
def test_a_robot_that_acknowledges_nothing_is_left_but_no_client():
    robot = robots_link(Pioneer, "127.0.0.1", 0)
    client = client_link(Pioneer, "127.0.0.1", robot.port, print)
    try:
        client.open()
        while not robot.has_peers:
            robot.receive()
        assert user_timeout_s(client) == vanished_after_s()
        assert user_timeout_s(robot) == 0, "a slow client is not ended"
    finally:
        client.close()
        robot.close()
