# SPDX-License-Identifier: Apache-2.0
"""Admission at the gateway with many connections, without a socket."""

import contextlib
import http.client
import socket
import threading
from unittest.mock import Mock

import pytest

pytest.importorskip("websockets.asyncio.server", reason="Ubuntu's websockets may be older")

from patience import TIMEOUT_S, wait_until

from drone_bridge.net.connector import LinkError
from drone_bridge.tools.web import gateway
from drone_bridge.tools.web.access import Access
from drone_bridge.tools.web.pilots import MAX_PILOTS, MAX_STOPPERS, Pilots


@pytest.fixture
def connect(monkeypatch):
    """Open a connection, and admit it as a page if requested."""
    kind = gateway._CountedConnection
    monkeypatch.setattr(kind, "open_ones", 0)
    monkeypatch.setattr(kind, "waiting", {})
    monkeypatch.setattr(gateway.ServerConnection, "connection_made", lambda *_: None)

    def open_one(*, is_page):
        connection = object.__new__(kind)
        connection.loop, connection.transport = Mock(), Mock()
        connection.connection_made(connection.transport)
        if is_page and not connection.transport.abort.called:
            connection.admit()
        return connection.transport.abort

    return open_one


def test_whoever_may_stop_comes_in_though_all_who_may_steer_are_there(connect):
    assert not any(connect(is_page=True).called for _ in range(MAX_PILOTS + MAX_STOPPERS))


def test_who_is_not_let_in_makes_room_for_who_comes_next(connect):
    aborts = [connect(is_page=False) for _ in range(gateway.MAX_WAITING)]
    assert not connect(is_page=True).called
    assert [abort.called for abort in aborts] == [True] + [False] * (len(aborts) - 1)


def door_at(port, host="127.0.0.1"):
    return gateway.Gateway(Access.of(host, steer=False), port, Mock(), Pilots())


@contextlib.contextmanager
def opened(port=0):
    """Open a door; yield it and its port."""
    door = door_at(port)
    try:
        yield door, door.open()
    finally:
        door.close()


def test_where_the_port_is_taken_the_next_free_one_is_listened_on():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with opened(port) as (_, other):
            assert port < other < port + gateway.PORTS_TRIED


def test_no_message_waits_for_the_acknowledgement_of_an_earlier_one(monkeypatch):
    waiting = {}
    monkeypatch.setattr(gateway._CountedConnection, "waiting", waiting)
    with opened() as (_, port), socket.create_connection(("127.0.0.1", port)):
        wait_until(lambda: any(hasattr(each, "transport") for each in waiting), "the accepted connection")
        (connection,) = waiting
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("path", "header", "values", "status"),
    [
        ("/", "X-Forwarded-For", ("192.0.2.7", "198.51.100.2"), 200),
        ("/recordings/flight", "X-Forwarded-For", ("192.0.2.7", "198.51.100.2"), 403),
        ("/", "Accept-Encoding", ("deflate", "gzip"), 200),
        ("/", "If-None-Match", ('"1"', '"2"'), 200),
        ("/", "Upgrade", ("h2c", "websocket"), 200),  # without a key, it is no handshake
        ("/", "Origin", ("http://127.0.0.1", "http://127.0.0.1"), 403),
        ("/", "Host", ("127.0.0.1", "127.0.0.1"), 403),
    ],
)
def test_lines_of_one_header_are_one_list(path, header, values, status):
    with opened() as (door, port):
        door.offer_files("recordings", lambda name: None)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        connection.putrequest("GET", path, skip_host=header == "Host", skip_accept_encoding=True)
        for value in values:
            connection.putheader(header, value)
        connection.endheaders()
        assert connection.getresponse().status == status


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/access.json", 403), ("/recordings/flight", 403)])
def test_behind_a_proxy_that_replaces_the_host_only_the_page_is_served(path, status):
    with opened() as (door, port):
        door.offer_files("recordings", lambda name: None)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        connection.request("GET", path, headers={"Origin": "https://robot.lan"})
        assert connection.getresponse().status == status


def handshake(port, upgrade="websocket", header=""):
    """Return the beginning of the response to a request for a WebSocket."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as viewer:
        viewer.sendall(
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n{header}"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Sec-WebSocket-Protocol: {gateway.HELM_SUBPROTOCOL}\r\n\r\n".encode()
        )
        return viewer.recv(1000)


@pytest.mark.parametrize("offered", ["websocket", "WebSocket", "h2c, websocket", "websocket,h2c"])
def test_a_websocket_is_opened_if_another_protocol_is_offered_too(offered):
    with opened() as (_, port):
        assert handshake(port, offered).startswith(b"HTTP/1.1 101 ")


def test_the_reason_of_a_refused_websocket_is_reported_since_browsers_show_none():
    with opened() as (door, port):
        door.on_refusal = (reasons := []).append
        assert handshake(port, header="Origin: http://localhost:8080\r\n").startswith(b"HTTP/1.1 403 ")
    assert ["'http://localhost:8080' may not connect" in each for each in reasons] == [True]


def test_a_method_other_than_get_ends_its_connection_and_no_other():
    with opened() as (_, port):
        for method in ("POST", "HEAD", "GET"):
            with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as viewer:
                viewer.sendall(f"{method} / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                assert viewer.makefile("rb").read().startswith(b"HTTP/1.1 200 ") is (method == "GET")


def test_a_request_has_to_come_in_time_and_its_answer_may_take_longer(monkeypatch):
    monkeypatch.setattr(gateway, "REQUEST_TIMEOUT_S", 2.0)
    is_asked, may_answer = threading.Event(), threading.Event()
    with opened() as (door, port), socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as reader:
        door.offer("history/ünï.json", lambda: is_asked.set() or may_answer.wait(TIMEOUT_S))
        reader.sendall(f"GET /history/%C3%BCn%C3%AF.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert is_asked.wait(TIMEOUT_S)
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as half:
            half.sendall(b"GET / HTTP/1.1\r\nHost: ")
            with contextlib.suppress(ConnectionResetError):
                assert half.recv(1) == b""
        may_answer.set()
        assert reader.makefile("rb").read().endswith(b"true")


def test_the_end_waits_for_no_answer_that_is_not_ready():
    is_asked, may_answer = threading.Event(), threading.Event()
    with opened() as (door, port), socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as reader:
        door.offer("slow.json", lambda: is_asked.set() or may_answer.wait(TIMEOUT_S))
        ending = threading.Thread(target=door.close)
        reader.sendall(f"GET /slow.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert is_asked.wait(TIMEOUT_S)
        ending.start()
        ending.join(TIMEOUT_S / 2)
        has_ended = not ending.is_alive()
        may_answer.set()
        ending.join()
    assert has_ended


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(LinkError, match=r"192\.0\.2\.1 is no address of this machine"):
        door_at(8765, "192.0.2.1").open()
