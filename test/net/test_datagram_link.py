# SPDX-License-Identifier: Apache-2.0
"""Datagram links: ports in use, and accepted senders."""

import select
import socket

import pytest
from patience import TIMEOUT_S, wait_until

from drone_bridge.ardrone.ports import DronePeer
from drone_bridge.dronegui.ports import RETRY_S, NavdataPeer, PortWithOutlet
from drone_bridge.net import datagram_link
from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import LinkCancelledError, LinkError, LinkRefusedError
from drone_bridge.net.datagram_link import FAILING_S, LOOK_UP_S, DatagramCaller, DatagramPeer, DatagramPort
from drone_bridge.robot_class.links import UdpRobot
from drone_bridge.wire.addresses import peer_name, same_host

HOST = "127.0.0.1"
LARGEST_PAYLOAD = 65507  # maximum payload of a datagram over IPv4


class Clock:
    now = 100.0

    def now_s(self):
        return self.now


@pytest.fixture
def peer(udp_socket):
    """Socket of a peer, which receives packets and sends state."""
    return udp_socket()


@pytest.fixture
def taken(udp_socket):
    """Socket on the port for state."""
    return udp_socket()


def link_to(peer, state_port, closing, said, clock=None):
    def on_port(address, problem):
        said.append((address, bool(problem)))

    port = peer.getsockname()[1]
    made = NavdataPeer(HOST, port, state_port, lambda *_: None, on_port=on_port, clock=clock or Clock())
    made.open()
    return closing(made)


def received(link):
    """Wait for a datagram."""
    return wait_until(link.receive, "a datagram")


def test_a_port_in_use_is_retried_until_it_is_free(peer, taken, closing):
    said, clock, port = [], Clock(), taken.getsockname()[1]
    link = link_to(peer, port, closing, said, clock)
    assert (said, f"{HOST}:{port} is in use" in link.problem) == ([(f"{HOST}:{port}", True)], True)
    taken.close()
    assert link.receive() is None
    assert len(said) == 1  # not yet
    clock.now += RETRY_S
    assert link.receive() is None
    assert (said[1:], link.problem) == ([(f"{HOST}:{port}", False)], "")
    peer.sendto(b"state", (HOST, port))
    assert received(link).data == b"state"
    assert link.peer_host == HOST


def test_replies_to_the_port_of_packets_are_not_read(peer, taken, closing):
    said, port = [], taken.getsockname()[1]
    taken.close()
    link = link_to(peer, port, closing, said)
    link.send(b"packet", None)
    _, source = peer.recvfrom(100)
    for number in range(100):
        peer.sendto(b"nonsense %d" % number, source)
    peer.sendto(b"state", (HOST, port))
    assert received(link).data == b"state"


def test_a_link_without_a_port_for_state_receives_nothing(peer, closing):
    said = []
    link = link_to(peer, None, closing, said)
    assert (link.receive(), link.problem, said, len(link.files())) == (None, "", [], 1)


def test_all_packets_are_sent_from_the_outlet(peer, taken, closing):
    for wanted in (taken.getsockname()[1], 0):  # in use by another socket
        link = closing(PortWithOutlet(HOST, 0, wanted))
        assert bool(link.problem) == bool(wanted)
        link.send(b"state", peer.getsockname())
        data, source = peer.recvfrom(100)
        assert (data, source[1]) == (b"state", link.outlet.port)
        peer.sendto(b"packet", (HOST, link.port))
        assert received(link).data == b"packet"
        assert link.loopback_host == HOST


def test_a_port_of_both_families_sends_to_its_own_machine_by_ipv4(peer, closing):
    """Programs that listen only on 127.0.0.1 expect it."""
    link = closing(DatagramPort("::", 0))
    link.send(b"state", (link.loopback_host, peer.getsockname()[1]))
    assert peer.recv(100) == b"state"
    assert closing(DatagramPort("::1", 0)).loopback_host == "::1"


def test_a_port_in_use_is_refused(taken):
    with pytest.raises(LinkError, match="is in use"):
        PortWithOutlet(HOST, taken.getsockname()[1], 0)


def test_a_link_is_reopened_after_sending_fails_for_long(peer, closing, monkeypatch):
    """Happens when this machine's address changes."""
    now_s = [100.0]
    monkeypatch.setattr(datagram_link, "elapsed_s", lambda: now_s[0])
    link = closing(DatagramPeer(*peer.getsockname(), lambda *_: None))
    link.open()
    too_long = bytes(70_000)

    def fail():
        with pytest.raises(LinkError):
            link.send(too_long, None)

    fail()
    now_s[0] += FAILING_S + 0.1
    link.send(b"one that goes out", None)
    assert link.receive() is None
    fail()
    now_s[0] += FAILING_S - 0.1
    fail()
    assert link.receive() is None
    now_s[0] += 0.2
    with pytest.raises(LinkError):
        link.receive()
    link.open()
    assert link.receive() is None


# One peer, which may be absent.


@pytest.fixture
def link(peer, closing):
    """Link to the peer."""
    link = closing(DatagramPeer(*peer.getsockname(), lambda *_: None))
    link.open()
    return link


def test_datagrams_arrive_complete(link, peer):
    assert link.peer == peer_name(peer.getsockname())
    for data in (b"one", b"", bytes(LARGEST_PAYLOAD)):
        link.send(data, None)
        arrived, source = peer.recvfrom(65535)
        assert (arrived, source[0]) == (data, link.own_host)
        peer.sendto(data[::-1], source)
        assert received(link).data == data[::-1]


def test_datagrams_of_other_senders_are_ignored(link, peer, udp_socket):
    link.send(b"here I am", None)
    _, address = peer.recvfrom(100)
    udp_socket().sendto(b"from a stranger", address)
    peer.sendto(b"from the peer", address)
    assert received(link).data == b"from the peer"


def test_a_refused_datagram_is_reported_with_the_next_one_which_is_sent(link, peer, udp_socket):
    port = peer.getsockname()[1]
    peer.close()
    link.send(b"to nobody", None)
    refusal = select.poll()
    refusal.register(link.files()[0], 0)
    assert refusal.poll(1000 * TIMEOUT_S)
    again = udp_socket(port)
    with pytest.raises(LinkRefusedError):
        link.send(b"to somebody", None)
    assert again.recv(100) == b"to somebody"
    link.send(b"more", None)
    assert again.recv(100) == b"more"


def test_cancelling_ends_receiving_but_not_sending(link, peer, cancellation):
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        receive(link, cancellation)
    link.send(b"last words", None)
    assert peer.recv(100) == b"last words"


def test_an_unresolvable_name_is_retried(cancellation):
    failures = []

    def on_failure(error, delay_s):
        failures.append((str(error), delay_s))
        if len(failures) == 2:
            cancellation.cancel()

    with pytest.raises(LinkCancelledError):
        DatagramPeer("no such host", 5560, on_failure, cancellation=cancellation).open()
    assert all("no such host:5560" in sentence for sentence, _ in failures)
    assert all(delay_s <= 1.0 for _, delay_s in failures)


def test_a_name_with_both_ip_versions_resolves_to_ipv4_for_legacy_programs(peer, closing, monkeypatch):
    """A name such as localhost often has addresses of both versions."""
    resolve = socket.getaddrinfo

    def resolve_both(host, port, **kinds):
        ipv4 = resolve(HOST, port, **kinds)
        return [(socket.AF_INET6, *ipv4[0][1:4], ("::1", port, 0, 0)), *ipv4]

    monkeypatch.setattr(socket, "getaddrinfo", resolve_both)
    link = closing(DatagramPeer("both", peer.getsockname()[1], lambda *_: None))
    link.open()
    assert (link.peer, link.peer_host) == (peer_name(peer.getsockname()), HOST)
    port = closing(DatagramPort("both", 0))
    peer.sendto(b"hello", (HOST, port.port))
    assert received(port).data == b"hello"


# One port of a host, which may reply from another port.


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "127.0.1.1"])
def test_a_host_may_reply_from_any_port(host, closing):
    ipv6 = ":" in host
    kind = socket.AF_INET6 if ipv6 else socket.AF_INET
    called, other = (closing(socket.socket(kind, socket.SOCK_DGRAM)) for _ in range(2))
    for opened in (called, other):
        opened.bind(("::" if ipv6 else "0.0.0.0", 0))
        opened.settimeout(TIMEOUT_S)
    link = closing(DatagramCaller(host, called.getsockname()[1], lambda *_: None))
    link.open()
    link.send(b"hello", None)
    arrived, source = called.recvfrom(100)
    assert arrived == b"hello"
    for answering in (called, other):
        answering.sendto(b"answer", source)
        answer = received(link)
        assert (answer.data, answer.source[1]) == (b"answer", answering.getsockname()[1])
        assert same_host(answer.source, link.address)


@pytest.mark.parametrize("kind", [DatagramPeer, DatagramCaller])
def test_a_refused_datagram_is_reported_once_and_wakes_the_loop_once(peer, closing, kind):
    link = closing(kind(*peer.getsockname(), lambda *_: None))
    link.open()
    peer.close()
    for _ in range(3):
        link.send(b"to nobody", None)
        with pytest.raises(LinkRefusedError):
            received(link)
        assert link.receive() is None
    poll = select.poll()
    poll.register(link.files()[0], select.POLLIN)
    assert poll.poll(0) == []


# Any sender.


def test_a_port_receives_from_any_sender_and_replies(udp_socket, closing):
    port = closing(DatagramPort(HOST, 0))
    for peer in (udp_socket(), udp_socket()):
        peer.sendto(b"question", (HOST, port.port))
        assert received(port) == (b"question", peer.getsockname())
        port.send(b"answer", peer.getsockname())
        assert peer.recvfrom(100) == (b"answer", (HOST, port.port))
    with pytest.raises(LinkError, match="Message too long"):
        port.send(bytes(LARGEST_PAYLOAD + 1), peer.getsockname())


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b", "1:2:3"])
def test_an_address_of_another_machine_is_reported(host):
    with pytest.raises(LinkError, match=host):
        DatagramPort(host, 0)


def test_an_ipv6_address_is_bracketed_before_its_port():
    assert peer_name(("127.0.0.1", 5)) == "127.0.0.1:5"
    assert peer_name(("::1", 5, 0, 0)) == "[::1]:5"
    assert peer_name(("::ffff:127.0.0.1", 5, 0, 0)) == "127.0.0.1:5"


# A peer whose name gets another address.


OLD, NEW = "127.0.0.2", "127.0.0.3"
PEERS = {
    "peer": lambda: DatagramPeer("robot.test", 9, print),
    "caller": lambda: DatagramCaller("robot.test", 9, print),
    "dronegui": lambda: NavdataPeer("robot.test", 9, 0, print, on_port=lambda *_: None, clock=Clock()),
    "robot class": lambda: UdpRobot("robot.test", 9, print, ports={"state": 0}, wire_log=None),
    "ardrone": lambda: DronePeer("robot.test", (9, 10, 0), print),
}


@pytest.fixture
def names(monkeypatch):
    """Address of robot.test."""
    address, resolve = [OLD], socket.getaddrinfo

    def getaddrinfo(host, port, **options):
        is_name = host == "robot.test" and not options.get("flags")
        return resolve(address[0] if is_name else host, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return address


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(datagram_link, "elapsed_s", clock.now_s)
    return clock


def has_moved(link):
    try:
        link.receive()
    except LinkRefusedError:
        return False
    except LinkError as error:
        return "no longer" in str(error)
    return False


@pytest.mark.parametrize("peer", PEERS)
def test_the_name_of_a_silent_peer_is_looked_up_again(names, clock, closing, peer):
    link = closing(PEERS[peer]())
    link.open()
    assert link.address[0] == OLD
    names[0] = NEW
    clock.now += LOOK_UP_S - 0.1
    assert not has_moved(link)
    assert link._looking_up is None
    clock.now += 0.2
    wait_until(lambda: has_moved(link), "the look-up")
    link.open()
    assert link.address[0] == NEW
    outlet = link.outlet_to(None)
    assert (outlet.address or outlet.file.getpeername())[0] == NEW
    assert not has_moved(link)


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_that_is_heard_keeps_its_address(names, clock, closing, peer):
    link = closing(PEERS[peer]())
    link.open()
    names[0] = NEW
    for _ in range(5):
        clock.now += LOOK_UP_S - 0.1
        for each in (link, getattr(link, "_navdata", link)):
            each.heard()
        assert not has_moved(link)
    assert link._looking_up is None


def test_an_address_is_not_looked_up(clock, closing):
    link = closing(DatagramPeer(OLD, 9, print))
    link.open()
    clock.now += 10 * LOOK_UP_S
    assert not has_moved(link)
    assert link._looking_up is None
