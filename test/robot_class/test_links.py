# SPDX-License-Identifier: Apache-2.0
"""Links of a robot in one class: how long a stream waits for the other end."""

import socket
import sys

import pytest
from own_robots import Pioneer, RoboMaster, Tello

from drone_bridge.net.connector import Cancellation, LinkCancelledError
from drone_bridge.net.link_loop import Connected
from drone_bridge.net.tcp import vanished_after_s
from drone_bridge.robot_class import links
from drone_bridge.robot_class.links import MAX_FOREIGN, client_link, robots_link


def user_timeout_s(link):
    (connection,) = link._by_peer.values()
    return connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such timeout")
def test_a_robot_that_acknowledges_nothing_is_left_but_no_client():
    robot = robots_link(Pioneer, "127.0.0.1", 0)
    client = client_link(Pioneer, "127.0.0.1", robot.port, print, ports={})
    try:
        client.open()
        while not robot.has_peers:
            robot.receive()
        assert user_timeout_s(client) == vanished_after_s()
        assert user_timeout_s(robot) == 0, "a slow client is not ended"
    finally:
        client.close()
        robot.close()


def test_a_flood_of_another_host_s_state_lets_the_loop_go_on(monkeypatch):
    monkeypatch.setattr(links, "same_host", lambda one, other: one[0] == other[0])  # loopback addresses are one host
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    robot = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    robot.bind(("127.0.0.1", 0))
    other.bind(("127.0.0.2", 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        state_port = probe.getsockname()[1]
    link = client_link(Tello, "127.0.0.1", robot.getsockname()[1], print, ports={"state": state_port})
    try:
        link.open()
        for _ in range(MAX_FOREIGN):
            other.sendto(b"bat:1;", ("127.0.0.1", state_port))
        robot.sendto(b"bat:87;", ("127.0.0.1", state_port))
        if sys.platform != "linux":  # there, the system drops them
            assert link.receive() is None, "the loop goes on"
        assert link.receive().data == b"bat:87;"
    finally:
        link.close()
        other.close()
        robot.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sorts datagrams by their source")
def test_a_second_link_to_one_drone_is_refused_and_another_drone_is_not():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    said, cancellation = [], Cancellation()

    def refused(error, delay_s):
        said.append(str(error))
        cancellation.cancel()

    ports = {"state": number}
    first, other = (client_link(Tello, host, 8889, print, ports=ports) for host in ("127.0.75.4", "127.0.75.5"))
    second = client_link(Tello, "127.0.75.4", 8889, refused, ports=ports, cancellation=cancellation)
    try:
        first.open()
        other.open()
        with pytest.raises(LinkCancelledError):
            second.open()
        assert f"Another process receives what 127.0.75.4 sends to port {number}" in said[0]
    finally:
        for each in (first, other, second):
            each.close()


def test_a_robot_on_tcp_reports_by_datagrams():
    robot = robots_link(RoboMaster, "127.0.0.1", 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    client = client_link(RoboMaster, "127.0.0.1", robot.port, print, ports={"state": number})
    try:
        client.open()
        robot.send(b"position 1 2 ;\n", ("127.0.0.1", number))
        received = []
        while not received or received[-1] is None:
            received.append(client.receive())
            received = [each for each in received if each is None or not isinstance(each, Connected)]
        assert (received[-1].data, received[-1].source) == (b"position 1 2 ;\n", "state")
    finally:
        client.close()
        robot.close()
