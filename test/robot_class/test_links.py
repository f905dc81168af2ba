# SPDX-License-Identifier: Apache-2.0
"""Links of a robot in one class: how long a stream waits for the other end."""

import socket
import sys

import ports
import pytest
from own_robots import Create2, Pioneer, RoboMaster, Tello
from patience import wait_until

from drone_bridge.net.connector import LinkCancelledError
from drone_bridge.net.link_loop import Connected
from drone_bridge.net.tcp import vanished_after_s
from drone_bridge.robot_class import Delimited, Tcp, links
from drone_bridge.robot_class.links import MOST_SILENT, client_link, robots_link


@pytest.fixture
def bound(closing):
    """bound(host) returns a UDP socket with a port of this host."""

    def bind(host):
        opened = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        opened.bind((host, 0))
        return opened

    return bind


def user_timeout_s(link):
    (connection,) = link._by_peer.values()
    return connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000


def test_a_host_that_a_serial_line_would_replace_is_refused():
    with pytest.raises(ValueError, match=r"host is 192\.168\.1\.5.*robot_serial"):
        client_link(Create2, "192.168.1.5", 7700, print, ports={}, serial="/dev/ttyUSB0")
    client_link(Create2, "127.0.0.1", 7700, print, ports={}, serial="/dev/ttyUSB0")


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such timeout")
def test_a_robot_that_acknowledges_nothing_is_left_but_no_client(closing):
    robot = closing(robots_link(Pioneer, "127.0.0.1", 0))
    client = closing(client_link(Pioneer, "127.0.0.1", robot.port, print, ports={}))
    client.open()
    while not robot.has_peers:
        robot.receive()
    assert user_timeout_s(client) == vanished_after_s()
    assert user_timeout_s(robot) == 0, "a slow client is not ended"


def test_programs_connect_to_ports_for_events_as_often_as_they_like(closing, free_port):
    events, others = ports.free_port(), ports.free_port()

    class Robot(RoboMaster):
        control = Tcp(free_port, Delimited(b";"))
        silent_ports = events, others

    robot = closing(robots_link(Robot, "127.0.0.1", free_port))
    first = closing(socket.create_connection(("127.0.0.1", events)))
    for _ in range(2 * MOST_SILENT):
        closing(socket.create_connection(("127.0.0.1", events)))
        robot.receive()
    assert len(robot._silent) <= MOST_SILENT
    assert first.recv(1) == b"", "the oldest has left"
    closing(socket.create_connection(("127.0.0.1", others)))
    closing(socket.create_connection(("127.0.0.1", free_port)))
    assert isinstance(wait_until(robot.receive, "a client"), Connected)


def test_a_flood_of_another_host_s_state_lets_the_loop_go_on(monkeypatch, closing, bound, free_port):
    monkeypatch.setattr(links, "same_host", lambda one, other: one[0] == other[0])  # loopback addresses are one host
    robot, other = bound("127.0.0.1"), bound("127.0.0.2")
    port = robot.getsockname()[1]
    link = closing(client_link(Tello, "127.0.0.1", port, print, ports={"state": free_port}))
    link.open()
    for _ in range(9):
        other.sendto(b"bat:1;", ("127.0.0.1", free_port))
    robot.sendto(b"bat:87;", ("127.0.0.1", free_port))
    assert wait_until(link.receive, "its state").data == b"bat:87;"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sorts datagrams by their source")
def test_a_second_link_to_one_drone_is_refused_and_another_drone_is_not(closing, cancellation, free_port):
    said = []

    def refused(error, delay_s):
        said.append(str(error))
        cancellation.cancel()

    def link(host, on_failure=print, **options):
        return closing(client_link(Tello, host, 8889, on_failure, ports={"state": free_port}, **options))

    link("127.0.75.4").open()
    link("127.0.75.5").open()
    with pytest.raises(LinkCancelledError):
        link("127.0.75.4", refused, cancellation=cancellation).open()
    assert f"Another process receives what 127.0.75.4 sends to port {free_port}" in said[0]


def test_a_robot_on_tcp_reports_by_datagrams(closing, free_port):
    robot = closing(robots_link(RoboMaster, "127.0.0.1", 0))
    client = closing(client_link(RoboMaster, "127.0.0.1", robot.port, print, ports={"state": free_port}))
    client.open()
    robot.send(b"position 1 2 ;\n", ("127.0.0.1", free_port))
    while (received := client.receive()) is None or isinstance(received, Connected):
        pass
    assert (received.data, received.source) == (b"position 1 2 ;\n", "state")
