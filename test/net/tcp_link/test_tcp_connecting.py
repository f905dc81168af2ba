# SPDX-License-Identifier: Apache-2.0
"""Connecting to peers that start late, have several addresses, do not respond, or do not exist."""

import socket
import threading
from unittest.mock import Mock

import pytest
from tcp_peer import LONG_S, LOOPBACK, NO_LEAKS, FixedBackoff, Task

from drone_bridge.net import tcp
from drone_bridge.net.connector import LinkCancelledError, UnknownHostError
from drone_bridge.net.listening import is_own_address

pytestmark = NO_LEAKS


@pytest.fixture
def failures_of(connector, cancellation):
    """Return a function: failures_of(port, count=2, ...) opens a link until it has failed twice. Returns the calls."""

    def made(port, *backoff, count=1, **options):
        failures = []

        def on_failure(error, delay_s):
            failures.append((error, delay_s))
            if len(failures) == count:
                cancellation.cancel()

        with pytest.raises(LinkCancelledError):
            Task(connector(port, on_failure, *backoff, **options).open).result()
        return failures

    return made


def test_connecting_waits_for_a_peer_that_starts_later(free_port, connector):
    failures = []
    failed_twice = threading.Event()

    def on_failure(error, delay_s):
        failures.append((str(error), delay_s))
        if len(failures) == 2:
            failed_twice.set()

    opening = Task(connector(free_port, on_failure, FixedBackoff(0.02)).open)
    assert failed_twice.wait(LONG_S)
    with socket.create_server(("127.0.0.1", free_port)) as server:
        opening.result()
        server.accept()[0].close()
    assert all("Connection refused" in sentence and delay_s == 0.02 for sentence, delay_s in failures)


def test_a_refused_connection_is_retried_each_second(free_port, failures_of):
    """So a restarted peer is soon connected."""
    assert [delay_s for _, delay_s in failures_of(free_port, FixedBackoff(5.0))] == [1.0]


@pytest.mark.parametrize("order", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")])
def test_every_address_of_a_name_is_tried(monkeypatch, peer_listener, connector, order):
    resolve_to(monkeypatch, *((socket.AF_INET, host) for host in order))
    link = connector(peer_listener.getsockname()[1], pytest.fail, host="localhost")
    link.open()
    assert str(link.receive().source) == "{}:{}".format(*peer_listener.getsockname())


@pytest.mark.parametrize("host", LOOPBACK)
def test_localhost_is_reached_when_only_one_family_listens(monkeypatch, connector, host):
    families = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
    resolve_to(monkeypatch, *((family, name) for name, family in families.items() if name in LOOPBACK))
    with socket.create_server((host, 0), family=families[host]) as server:
        connector(server.getsockname()[1], pytest.fail, host="localhost").open()


def test_a_disabled_address_family_is_skipped(monkeypatch, peer_listener, connector):
    no_such_family = 9999
    resolve_to(monkeypatch, (no_such_family, "::1"), (socket.AF_INET, "127.0.0.1"))
    connector(peer_listener.getsockname()[1], pytest.fail, host="localhost").open()


def resolve_to(monkeypatch, *families_and_hosts):
    def getaddrinfo(host, port, type, flags=0):
        return [(family, type, 0, "", (name, port)) for family, name in families_and_hosts]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 1), ("127.0.0.1\0", 1), ("x" * 64 + ".org", 1), ("127.0.0.1", 70000)]
)
def test_an_invalid_address_is_reported_and_does_not_hang(failures_of, host, port):
    ((error, _),) = failures_of(port, host=host)
    assert str(error).startswith(f"{host}:{port} ")


def test_an_unknown_host_name_is_reported(monkeypatch, failures_of):
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=unknown))
    assert [type(error) for error, _ in failures_of(8000, host="testbed")] == [UnknownHostError]


def test_an_unresponsive_peer_is_retried(monkeypatch, unresponsive_port, failures_of):
    monkeypatch.setattr(tcp, "CONNECT_TIMEOUT_S", 0.05)
    sentences = [str(error) for error, _ in failures_of(unresponsive_port, FixedBackoff(0), count=2)]
    assert all(f"127.0.0.1:{unresponsive_port}" in sentence and "0.05 s" in sentence for sentence in sentences)


def test_a_socket_connected_to_itself_is_not_taken_for_a_peer(monkeypatch, free_port, failures_of):
    class Mirror(socket.socket):
        """Binds the port to which it then connects, as may happen by chance with an ephemeral port."""

        def connect(self, address):
            self.bind(address)
            super().connect(address)

    monkeypatch.setattr(socket, "socket", Mirror)
    ((error, _),) = failures_of(free_port)
    assert f"127.0.0.1:{free_port}" in str(error)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::", "robot.local", "192.0.2.1"])
def test_an_address_of_another_machine_is_told_from_ours_and_from_names(host):
    assert is_own_address(host) == (host != "192.0.2.1")
