# SPDX-License-Identifier: Apache-2.0
"""UDP links over real sockets: to a peer that may not be there, from whoever sends, and cancellation."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from patience import TIMEOUT_S

from drone_bridge.net.connector import LinkCancelledError, LinkError, LinkRefusedError, LinkTimeoutError
from drone_bridge.net.udp import UdpConnector, UdpListener
from drone_bridge.wire.addresses import peer_name

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")

LONG_S = TIMEOUT_S
SHORT_S = 0.05
LARGEST_PAYLOAD = 65507  # what IPv4 leaves of a datagram


@pytest.fixture
def threads(cancellation):
    with ThreadPoolExecutor() as pool:
        yield pool
        cancellation.cancel()


@pytest.fixture
def new_peer():
    """new_peer() gives a bound socket of somebody else."""
    peers = []

    def bind(port=0):
        peers.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        peers[-1].bind(("127.0.0.1", port))
        peers[-1].settimeout(LONG_S)
        return peers[-1]

    yield bind
    for peer in peers:
        peer.close()


@pytest.fixture
def peer(new_peer):
    return new_peer()


@pytest.fixture
def stream(peer, cancellation):
    """A link of ours to the peer."""
    stream = connector(peer.getsockname()[1], cancellation).open()
    yield stream
    stream.close()


@pytest.fixture
def listener(cancellation):
    listener = UdpListener("127.0.0.1", 0, cancellation)
    yield listener
    listener.close()


def connector(port, cancellation, host="127.0.0.1", on_failure=lambda sentence, delay_s: None):
    return UdpConnector(host, port, cancellation, on_failure)


def name(peer):
    return "{}:{}".format(*peer.getsockname())


def test_what_another_thread_sends_after_the_end_goes_nowhere_and_is_no_error(stream, listener, peer):
    """As an executor that is about to send state while the node leaves."""
    stream.close()
    listener.close()
    stream.send(b"late")
    listener.send(b"late", peer.getsockname())
    peer.setblocking(False)
    with pytest.raises(BlockingIOError):
        peer.recv(10)


# To one peer.


def test_datagrams_arrive_complete(stream, peer):
    assert stream.peer == name(peer)
    for data in (b"one", b"", bytes(LARGEST_PAYLOAD)):
        stream.send(data)
        received, source = peer.recvfrom(65535)
        assert received == data
        peer.sendto(data[::-1], source)
        assert stream.receive(LONG_S) == data[::-1]


def test_datagrams_of_others_are_ignored(stream, peer, new_peer):
    stream.send(b"here I am")
    _, address = peer.recvfrom(100)
    new_peer().sendto(b"from a stranger", address)
    peer.sendto(b"from the peer", address)
    assert stream.receive(LONG_S) == b"from the peer"


def test_an_oversized_datagram_is_an_error(stream):
    with pytest.raises(LinkError, match=r"Nothing can be sent to 127\.0\.0\.1:.*long"):
        stream.send(bytes(LARGEST_PAYLOAD + 1))


def test_silence_is_a_timeout(stream):
    with pytest.raises(LinkTimeoutError, match=r"sent nothing for 0\.05 s"):
        stream.receive(SHORT_S)


def test_a_refused_datagram_is_reported_with_the_next_one_which_is_sent_anyway(stream, peer, new_peer):
    port = peer.getsockname()[1]
    peer.close()
    stream.send(b"to nobody")
    again = new_peer(port)
    with pytest.raises(LinkRefusedError, match="Nobody listens at"):
        stream.send(b"to somebody")
    assert again.recv(100) == b"to somebody"
    stream.send(b"more")
    assert again.recv(100) == b"more"


def test_a_refused_datagram_is_reported_when_receiving_too(stream, peer):
    peer.close()
    stream.send(b"to nobody")
    with pytest.raises(LinkRefusedError):
        stream.receive(LONG_S)


def test_sending_to_a_closed_port_is_refused_each_time_but_the_first(stream, peer):
    peer.close()
    stream.send(b"0")
    for _ in range(5):
        with pytest.raises(LinkRefusedError):
            stream.send(b"again")


def test_cancelling_ends_receiving_but_not_sending(stream, peer, cancellation, threads):
    receiving = threads.submit(stream.receive)
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        receiving.result(LONG_S)
    with pytest.raises(LinkCancelledError):
        stream.receive(LONG_S)
    stream.send(b"last words")
    assert peer.recv(100) == b"last words"


def test_closing_twice_is_harmless(stream):
    stream.close()
    stream.close()


def test_an_unresolvable_name_is_retried(cancellation, threads):
    failures = []

    def on_failure(sentence, delay_s):
        failures.append((sentence, delay_s))
        if len(failures) == 2:
            cancellation.cancel()

    opening = threads.submit(connector(5560, cancellation, "no such host", on_failure).open)
    with pytest.raises(LinkCancelledError):
        opening.result(LONG_S)
    assert all("no such host:5560 can't be reached" in sentence for sentence, _ in failures)
    assert all(delay_s <= 1.0 for _, delay_s in failures)


def test_names_are_resolved(peer, cancellation):
    stream = connector(peer.getsockname()[1], cancellation, "localhost").open()
    assert stream.peer.endswith(f":{peer.getsockname()[1]}")
    stream.close()


@pytest.fixture
def ipv6_first(monkeypatch):
    """A name, as localhost often does, stands for addresses of both versions."""
    resolve = socket.getaddrinfo

    def resolve_both(host, port, **kinds):
        ipv4 = resolve("127.0.0.1", port, **kinds)
        return [(socket.AF_INET6, *ipv4[0][1:4], ("::1", port, 0, 0)), *ipv4]

    monkeypatch.setattr(socket, "getaddrinfo", resolve_both)


@pytest.mark.usefixtures("ipv6_first")
def test_a_name_of_both_versions_means_ipv4_where_legacy_programs_are(peer, cancellation):
    stream = connector(peer.getsockname()[1], cancellation, host="both").open()
    assert stream.peer == name(peer)
    stream.close()
    listener = UdpListener("both", 0, cancellation)
    peer.sendto(b"hello", ("127.0.0.1", listener.port))
    assert listener.receive(LONG_S).data == b"hello"
    listener.close()


# From whoever sends.


def test_a_listener_receives_from_anybody(listener, new_peer):
    for peer in (new_peer(), new_peer()):
        peer.sendto(name(peer).encode(), ("127.0.0.1", listener.port))
        data, source = listener.receive(LONG_S)
        assert data.decode() == name(peer) == "{}:{}".format(*source)


def test_a_listener_answers_anybody_from_its_port(listener, peer, cancellation):
    cancellation.cancel()
    listener.send(b"answer", peer.getsockname())
    assert peer.recvfrom(100) == (b"answer", ("127.0.0.1", listener.port))
    with pytest.raises(LinkError, match=r"Nothing can be sent to 127\.0\.0\.1:\d+: Message too long\."):
        listener.send(bytes(LARGEST_PAYLOAD + 1), peer.getsockname())


def test_a_listener_times_out_and_is_cancelled(listener, cancellation, threads):
    with pytest.raises(LinkTimeoutError):
        listener.receive(0)
    receiving = threads.submit(listener.receive)
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        receiving.result(LONG_S)


def test_a_port_in_use_is_refused(peer, cancellation):
    port = peer.getsockname()[1]
    with pytest.raises(LinkError, match=f"Can.t listen on 127.0.0.1:{port}: Address already in use"):
        UdpListener("127.0.0.1", port, cancellation)


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b", "1:2:3"])
def test_an_address_of_another_machine_is_reported(cancellation, host):
    with pytest.raises(LinkError, match=r"Can't listen on \[?" + host + r"\]?:0: .*\.$"):
        UdpListener(host, 0, cancellation)


def test_an_address_shows_where_its_port_begins():
    assert peer_name(("127.0.0.1", 5)) == "127.0.0.1:5"
    assert peer_name(("::1", 5, 0, 0)) == "[::1]:5"
    assert peer_name(("::ffff:127.0.0.1", 5, 0, 0)) == "127.0.0.1:5"
