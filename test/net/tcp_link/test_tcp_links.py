# SPDX-License-Identifier: Apache-2.0
"""TCP links for a LinkLoop: events of streams, and independence of peers."""

import contextlib
import os
import socket
import time
from unittest.mock import ANY

import pytest
from patience import wait_until
from tcp_peer import LONG_S, LOOPBACK

from drone_bridge.net import tcp_port
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkClosedError, LinkError, LinkInUseError
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, ReceivedData, StreamLink
from drone_bridge.net.tcp_connection import MAX_UNREAD_BYTES, StreamOptions, TcpConnection
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort


@pytest.fixture
def port(closing):
    return closing(TcpPort("127.0.0.1", 0, options=StreamOptions(chunk_bytes=8)))


@pytest.fixture
def connect(port, closing):
    """Connect a client. Return its socket and its name for the session."""

    def made():
        client = closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
        event = hear(port)
        assert isinstance(event, Connected)
        assert str(event.source) == f"127.0.0.1:{client.getsockname()[1]}"
        return client, event.source

    return made


def hear(link):
    """Return the next event of the link."""
    return wait_until(link.receive, "something on the link", period_s=0.001)


def read_by(client, port, size):
    """Return what a client reads from a port, up to this size."""
    client.settimeout(0.01)
    got = bytearray()

    def take():
        assert port.receive() is None
        with contextlib.suppress(TimeoutError):
            got.extend(client.recv(1 << 20))
        return len(got) >= size

    wait_until(take, "all of it", period_s=1e-4)
    return got


def test_both_are_links_of_streams(port, peer):
    assert isinstance(port, StreamLink)
    assert isinstance(peer, StreamLink)


def test_a_stream_has_a_start_chunks_of_bounded_size_and_an_end(port, connect):
    client, peer = connect()
    client.sendall(b"0123456789")
    assert hear(port) == ReceivedData(b"01234567", peer)
    assert hear(port) == ReceivedData(b"89", peer)
    client.close()
    assert hear(port) == Disconnected(peer, ANY, is_regular=True)
    assert port.receive() is None


def test_data_and_the_end_of_a_connection_precede_the_next_connection(port, connect, closing):
    client, _ = connect()
    client.sendall(b"its last words, in several chunks")
    client.close()
    closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
    heard = [hear(port) for _ in range(7)]
    assert [type(event) for event in heard] == [ReceivedData] * 5 + [Disconnected, Connected]


def test_peers_take_turns_even_if_one_floods(port, connect):
    (loud, loud_peer), (quiet, quiet_peer) = connect(), connect()
    loud.sendall(b"x" * 10_000)
    hear(port)
    quiet.sendall(b"stop")
    heard = []
    wait_until(lambda: heard.append(hear(port)) or heard[-1].source is quiet_peer, "the quiet one", period_s=1e-4)
    assert {event.source for event in heard[:-1]} <= {loud_peer}
    assert heard[-1].data == b"stop"
    assert sum(len(event.data) for event in heard[:-1]) < 10_000 - 8


def test_connections_are_accepted_even_if_a_peer_floods(port, connect, closing):
    loud, _ = connect()
    loud.sendall(b"x" * 10_000)
    hear(port)
    closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
    heard = []
    wait_until(lambda: heard.append(hear(port)) or isinstance(heard[-1], Connected), "the other one", period_s=1e-4)
    assert len(heard) < 10_000 / 8 - 1


def test_a_peer_that_does_not_read_blocks_no_other_and_is_dropped(port, connect):
    (_, deaf_peer), (other, other_peer) = connect(), connect()
    piece = b"x" * 65536

    def is_given_up():
        port.send(piece, deaf_peer)
        port.send(b".", other_peer)
        return port.receive()

    event = wait_until(is_given_up, "an end", period_s=1e-4)
    assert event == Disconnected(deaf_peer, f"{deaf_peer} has left {MAX_UNREAD_BYTES // 1024} KiB unread.")
    assert set(other.recv(100)) == set(b".")
    port.send(b"nothing", deaf_peer)  # which is no fault
    assert not port.has_unsent(deaf_peer)


def test_a_slow_peer_of_a_bounded_protocol_is_kept(closing):
    port = closing(TcpPort("127.0.0.1", 0, options=StreamOptions(max_unread_bytes=40 * MAX_UNREAD_BYTES)))
    client = closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
    peer, size = hear(port).source, 20 * MAX_UNREAD_BYTES
    left, right = os.urandom(size), os.urandom(size)
    assert not port.has_unsent(peer)
    for piece in (left, memoryview(right)):
        port.send(piece, peer)
    assert port.has_unsent(peer)
    assert read_by(client, port, 2 * size) == left + right
    assert not port.has_unsent(peer)


def test_a_reading_peer_may_receive_more_than_the_limit_of_unread_data(port, connect):
    client, peer = connect()
    for number in range(5):
        piece = bytes([number]) * (MAX_UNREAD_BYTES // 2)
        port.send(piece, peer)
        assert read_by(client, port, len(piece)) == piece


def test_data_are_read_into_the_provided_buffer(closing):
    memory, logged = [bytearray(4), bytearray(3)], []
    options = StreamOptions(memory=lambda peer: [memoryview(each) for each in memory])
    port = closing(
        TcpPort("127.0.0.1", 0, options=options, wire_log=lambda *_: lambda _, data: logged.append(bytes(data)))
    )
    client = closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
    peer = hear(port).source
    client.sendall(b"012345678")
    assert hear(port) == FilledBuffer(7, peer)
    assert memory == [b"0123", b"456"]
    assert hear(port) == FilledBuffer(2, peer)
    assert memory == [b"7823", b"456"]
    assert logged == [b"0123", b"456", b"78"]
    client.close()
    assert hear(port).is_regular


def test_a_disconnected_peer_receives_pending_data_and_is_not_read(port, connect):
    client, peer = connect()
    client.sendall(b"unread")
    port.send(b"last words", peer)
    port.disconnect(peer)
    client.sendall(b"more")
    assert client.recv(100) == b"last words"
    assert client.recv(100) == b""
    client.close()
    time.sleep(0.02)
    assert port.receive() is None


@pytest.fixture
def leave(closing):
    """Connect clients to a port with these options that disconnects them. Return their sockets."""

    def made(count, **options):
        port = closing(TcpPort("127.0.0.1", 0, options=StreamOptions(**options)))
        clients = []
        for _ in range(count):
            clients.append(closing(socket.create_connection(("127.0.0.1", port.port), LONG_S)))
            port.disconnect(hear(port).source)
        return clients

    return made


def is_closed(client):
    """Return whether a peer has closed, by sending to it."""
    try:
        client.sendall(b"still here")
    except ConnectionError:
        return True
    return False


def test_a_disconnected_peer_that_does_not_close_is_eventually_closed(leave):
    (client,) = leave(1, linger_s=0.05)
    wait_until(lambda: is_closed(client), "the end", period_s=0.01)


def test_a_lingering_peer_is_drained_in_the_background(leave):
    """It would stall once its buffers are full, while the link's thread may be opening another connection."""
    (client,) = leave(1, linger_s=LONG_S)
    assert client.recv(1) == b""
    client.sendall(bytes(32 << 20))  # blocks unless it is read


def test_a_peer_that_has_closed_and_does_not_read_costs_no_time(closing, monkeypatch):
    leave, calls = TcpConnection.has_left, []
    monkeypatch.setattr(TcpConnection, "has_left", lambda connection: calls.append(None) or leave(connection))
    port = closing(TcpPort("127.0.0.1", 0, options=StreamOptions(linger_s=LONG_S, max_unread_bytes=64 << 20)))
    client = closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
    peer = hear(port).source
    port.send(bytes(32 << 20), peer)
    client.shutdown(socket.SHUT_WR)
    port.disconnect(peer)
    time.sleep(0.2)  # a busy loop would poll it thousands of times
    assert len(calls) < 20


def test_of_too_many_lingering_peers_the_oldest_is_closed(leave):
    clients = leave(3, linger_s=LONG_S, max_lingering=2)
    wait_until(lambda: is_closed(clients[0]), "the end of the oldest", period_s=0.01)
    assert not any(map(is_closed, clients[1:]))


def test_closing_waits_for_the_last_data_of_all_peers(port, connect):
    clients = [connect() for _ in range(3)]
    for client, peer in clients:
        client.sendall(b"unread, which would reset the connection")
        port.send(b"neutral", peer)
    port.close()
    for client, _ in clients:
        assert client.recv(100) == b"neutral"
        assert client.recv(100) == b""


def test_after_disconnect_all_no_peer_is_read(port, connect):
    client, _ = connect()
    client.sendall(b"old")
    port.disconnect_all()
    assert client.recv(1) == b""
    assert port.receive() is None
    assert isinstance(connect()[0], socket.socket)


def test_a_reset_connection_is_disconnected(port, connect):
    client, peer = connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    ended = hear(port)
    assert ended == Disconnected(peer, ANY)
    assert "Connection reset" in ended.sentence


def test_a_flood_of_short_connections_leaks_no_descriptor(port):
    before = len(os.listdir("/proc/self/fd"))
    for number in range(300):
        with socket.create_connection(("127.0.0.1", port.port), LONG_S) as client:
            client.sendall(b"said")
            if number % 5 == 4:  # as one that was killed
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        while port.receive():
            pass

    def is_over():
        while port.receive():
            pass
        return len(os.listdir("/proc/self/fd")) <= before

    wait_until(is_over, "the descriptors of those who went")


def test_without_free_descriptors_a_peer_is_accepted_later(port, connect, monkeypatch):
    monkeypatch.setattr(tcp_port, "ACCEPT_RETRY_S", 0.05)
    listening, failures = port._listening, [OSError(24, "Too many open files")]

    class Failing:
        def __getattr__(self, name):
            return getattr(listening, name)

        def accept(self):
            if failures:
                raise failures.pop()
            return listening.accept()

    port._listening = Failing()
    connect()
    assert failures == []


@pytest.mark.parametrize("host", ["::", "0.0.0.0"])
def test_all_interfaces_are_reachable_by_ipv4_by_any_wildcard(host, closing):
    port = closing(TcpPort(host, 0))
    client = closing(socket.create_connection(("127.0.0.1", port.port), LONG_S))
    assert str(hear(port).source) == f"127.0.0.1:{client.getsockname()[1]}"


@pytest.mark.skipif("::1" not in LOOPBACK, reason="there is no IPv6 here")
@pytest.mark.parametrize(("host", "others"), [("::1", "127.0.0.1"), ("127.0.0.1", "::1"), ("localhost", "::1")])
def test_a_specific_address_has_one_ip_version(host, others, closing):
    port = closing(TcpPort(host, 0))
    closing(socket.create_connection((host, port.port), LONG_S))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((others, port.port), LONG_S)


def test_a_port_in_use_is_reported(port):
    with pytest.raises(LinkInUseError) as refusal:
        TcpPort("127.0.0.1", port.port)
    assert f"127.0.0.1:{port.port} is in use by" in str(refusal.value)
    assert f"(process {os.getpid()})" in str(refusal.value)


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b", "1:2:3"])
def test_an_address_of_another_machine_is_reported(host):
    with pytest.raises(LinkError, match=host):
        TcpPort(host, 0)


@pytest.mark.parametrize("number", [-1, 65536])
def test_an_invalid_port_is_reported(number):
    with pytest.raises(LinkError, match=f"{number}.*65535"):
        TcpPort("127.0.0.1", number)


def test_an_empty_host_does_not_mean_all_interfaces():
    with pytest.raises(LinkError, match=r"0\.0\.0\.0"):
        TcpPort("", 0)


@pytest.mark.parametrize("waits", [False, True])
def test_nagle_s_algorithm_is_used_only_if_requested(server, closing, waits):
    ours = socket.create_connection(server.getsockname(), LONG_S)
    closing(TcpConnection(ours, StreamOptions(waits_for_acknowledgements=waits)))
    assert bool(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) is not waits
    assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_socket_whose_peer_has_disconnected_is_closed():
    unconnected = socket.socket()
    with pytest.raises(OSError, match="not connected"):
        TcpConnection(unconnected, StreamOptions())
    assert unconnected.fileno() == -1


# Outgoing connection.


@pytest.fixture
def server(closing):
    made = closing(socket.create_server(("127.0.0.1", 0)))
    made.settimeout(LONG_S)
    return made


@pytest.fixture
def peer(server, closing):
    return closing(TcpPeer("127.0.0.1", server.getsockname()[1], lambda sentence, delay_s: None))


def test_an_outgoing_link_has_the_same_events_and_reconnects(server, peer, closing):
    peer.open()
    accepted = closing(server.accept()[0])
    source = hear(peer).source
    peer.send(b"hello", source)
    assert accepted.recv(10) == b"hello"
    accepted.sendall(b"bye")
    accepted.close()
    assert hear(peer).data == b"bye"
    assert isinstance(hear(peer), Disconnected)
    with pytest.raises(LinkClosedError):
        peer.receive()
    peer.send(b"neutral", source)  # to nobody
    peer.open()
    assert isinstance(hear(peer), Connected)
    closing(server.accept()[0])


def test_an_outgoing_link_sends_its_last_data_when_the_session_disconnects(server, peer, closing):
    peer.open()
    accepted = closing(server.accept()[0])
    source = hear(peer).source
    accepted.sendall(b"unread")
    peer.send(b"neutral", source)
    peer.disconnect(source)
    with pytest.raises(LinkClosedError):
        peer.receive()
    assert accepted.recv(10) == b"neutral"
    assert accepted.recv(10) == b""


# Several outgoing connections.


@pytest.fixture
def three(server, closing):
    failures = []
    made = closing(
        TcpPeer(
            "127.0.0.1", server.getsockname()[1], lambda sentence, delay_s: failures.append(sentence), connections=3
        )
    )
    made.failures = failures
    return made


def test_several_connections_have_separate_names_and_ends(server, three, closing):
    three.open()
    accepted = [closing(server.accept()[0]) for _ in range(3)]
    peers = [hear(three).source for _ in range(3)]
    for number, peer in enumerate(peers):
        three.send(str(number).encode(), peer)
    assert [each.recv(10) for each in accepted] == [b"0", b"1", b"2"]
    accepted[2].close()
    assert hear(three).source is peers[2]
    three.send(b"to nobody", peers[2])
    three.disconnect(peers[0])
    assert accepted[0].recv(10) == b""
    accepted[1].sendall(b"here")
    assert hear(three) == ReceivedData(b"here", peers[1])
    three.disconnect(peers[1])
    with pytest.raises(LinkClosedError):
        three.receive()


def test_several_connections_are_opened_all_or_none(server, three, closing, monkeypatch):
    """Connections opened before a failing one are closed, and all are opened again."""
    connect, attempts = three._connect_to, []

    def fail_third(connecting, address):
        attempts.append(address)
        if len(attempts) == 3:
            raise OSError(111, "refused")
        connect(connecting, address)

    monkeypatch.setattr(three, "_connect_to", fail_third)
    three.open()
    abandoned, accepted = ([closing(server.accept()[0]) for _ in range(count)] for count in (2, 3))
    assert [each.recv(10) for each in abandoned] == [b"", b""]
    assert len(three.failures) == 1
    assert [type(hear(three)) for _ in range(3)] == [Connected] * 3
    accepted[0].sendall(b"here")
    assert hear(three).data == b"here"


def test_several_connections_are_all_reopened_if_one_disconnects_at_once(server, three, closing, monkeypatch):
    add, added = three.add, []

    def lose_second(connected):
        added.append(connected)
        if len(added) == 2:
            connected.close()
            return None
        return add(connected)

    monkeypatch.setattr(three, "add", lose_second)
    three.open()
    abandoned, accepted = ([closing(server.accept()[0]) for _ in range(3)] for _ in range(2))
    assert [each.recv(10) for each in abandoned] == [b""] * 3
    assert [f"127.0.0.1:{server.getsockname()[1]}" in str(failure) for failure in three.failures] == [True]
    assert [type(hear(three)) for _ in range(3)] == [Connected] * 3
    accepted[0].sendall(b"here")
    assert hear(three).data == b"here"


def test_stale_messages_that_were_dropped_for_a_peer_are_reported_once(port, connect):
    _, peer = connect()
    while not port.has_unsent(peer):
        port.send(bytes(65536), peer)
    with pytest.raises(LinkError, match="1 stale message"):
        port.send(b"late", peer, until_s=elapsed_s() - 1.0)
    port.send(b"next", peer)
